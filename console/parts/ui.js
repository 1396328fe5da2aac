// The imports of every component. `html` creates elements; interpolated text stays text.

import { h } from "../vendor/preact.js";
import htm from "../vendor/htm.js";

export const html = htm.bind(h);

export { Component, render } from "../vendor/preact.js";
export { useEffect, useId, useLayoutEffect, useMemo, useRef, useState } from "../vendor/preact-hooks.js";
export { computed, signal, useSignal } from "../vendor/signals.js";

/** @typedef {import("../vendor/preact.js").ComponentChildren} Children */

/** Joins the class names that are set.
 * @param {...(string | false | null | undefined)} names */
export function classNames(...names) {
  return names.filter(Boolean).join(" ");
}
