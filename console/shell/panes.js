// Which pane above the screen is open.

import { signal } from "../vendor/signals.js";

/** @typedef {"search" | "commands" | "help" | "menu"} Pane */

/** @type {import("../vendor/signals.js").Signal<Pane | null>} */
export const currentPane = signal(null);

/** @param {Pane} pane */
export function togglePane(pane) {
  currentPane.value = currentPane.value === pane ? null : pane;
}
