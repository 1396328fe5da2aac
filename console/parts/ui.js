// The few words that every module with something to show needs. `html` makes elements; text put into it stays text.

import { h } from "../vendor/preact.js";
import htm from "../vendor/htm.js";

export const html = htm.bind(h);

export { Component, createContext, render } from "../vendor/preact.js";
export {
  useCallback, useContext, useEffect, useId, useLayoutEffect, useMemo, useReducer, useRef, useState,
} from "../vendor/preact-hooks.js";
export { batch, computed, effect, signal, untracked, useComputed, useSignal, useSignalEffect } from "../vendor/signals.js";

/** @typedef {import("../vendor/preact.js").ComponentChildren} Children */

/** Names of classes, those that hold.
 * @param {...(string | false | null | undefined)} names */
export function classNames(...names) {
  return names.filter(Boolean).join(" ");
}
