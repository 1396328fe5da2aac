// The imports of every component. `html` creates elements; interpolated text stays text.

import { h } from "../vendor/preact.js";
import htm from "../vendor/htm.js";

export const html = htm.bind(h);

export { Component, createContext, render } from "../vendor/preact.js";
export {
  useCallback, useContext, useEffect, useId, useLayoutEffect, useMemo, useReducer, useRef, useState,
} from "../vendor/preact-hooks.js";
export { batch, computed, effect, signal, untracked, useComputed, useSignal, useSignalEffect } from "../vendor/signals.js";

/** @typedef {import("../vendor/preact.js").ComponentChildren} Children */

/** Joins the class names that are set.
 * @param {...(string | false | null | undefined)} names */
export function classNames(...names) {
  return names.filter(Boolean).join(" ");
}
