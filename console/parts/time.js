// Times and durations on the screen. The full time is in the title, in the zone that was chosen.

import { clock, duration, full, millis, now, relative } from "../data/time.js";
import { html } from "./ui.js";

/** @typedef {string | number | null | undefined} At an instant as the API writes it, milliseconds, or an EventId */

/** `3 min ago`
 * @param {{at: At, none?: string}} props */
export function Ago({ at, none = "–" }) {
  const ms = millis(at);
  if (ms === null) return html`<span class="faint">${none}</span>`;
  return html`<time class="number" datetime=${iso(ms)} title=${full(ms)}>${relative(ms)}</time>`;
}

/** `10:47:55.104`, with the day if it is not today.
 * @param {{at: At, none?: string, fine?: boolean}} props */
export function Clock({ at, none = "–", fine = true }) {
  const ms = millis(at);
  if (ms === null) return html`<span class="faint">${none}</span>`;
  return html`<time class="number" datetime=${iso(ms)} title=${full(ms)}>${clock(ms, fine)}</time>`;
}

/** `2026-11-15 10:47:55.104 UTC · 3 min ago`
 * @param {{at: At, none?: string}} props */
export function Full({ at, none = "–" }) {
  const ms = millis(at);
  if (ms === null) return html`<span class="faint">${none}</span>`;
  return html`<time class="number" datetime=${iso(ms)}>${full(ms)} <span class="faint">· ${relative(ms)}</span></time>`;
}

/** How long something took, or takes if it has no end yet.
 * @param {{from?: At, to?: At, ms?: number | null}} props */
export function Duration({ from, to, ms }) {
  const begun = millis(from);
  const time = ms ?? (begun === null ? null : (millis(to) ?? now.value) - begun);
  if (time === null) return html`<span class="faint">–</span>`;
  return html`<span class="number">${duration(Math.max(0, time))}</span>`;
}

/** @param {number} ms */
function iso(ms) {
  return new Date(ms).toISOString();
}
