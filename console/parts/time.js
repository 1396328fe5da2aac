// Times and durations. The tooltip has the full time in the selected zone.

import { formatTimeWithDayUnlessToday, formatDuration, formatDateTime, toMillis, now, formatRelative } from "../data/time.js";
import { html } from "./ui.js";

/** @typedef {string | number | null | undefined} TimeValue an instant as the API writes it, milliseconds, or an
 * EventId */

/** `3 min ago`, `in 2 h`
 * @param {{at: TimeValue, emptyText?: string}} props */
export function RelativeTime({ at, emptyText = "–" }) {
  const ms = toMillis(at);
  if (ms === null) return html`<span class="faint">${emptyText}</span>`;
  return html`<time class="number" datetime=${toIsoTime(ms)} title=${formatDateTime(ms)}>${formatRelative(ms)}</time>`;
}

/** `10:47:55.104`, with the day if it is not today.
 * @param {{at: TimeValue, emptyText?: string, withMillis?: boolean}} props */
export function TimeWithDayUnlessToday({ at, emptyText = "–", withMillis = true }) {
  const ms = toMillis(at);
  if (ms === null) return html`<span class="faint">${emptyText}</span>`;
  return html`<time class="number" datetime=${toIsoTime(ms)} title=${formatDateTime(ms)}>${formatTimeWithDayUnlessToday(ms, withMillis)}</time>`;
}

/** `2026-11-15 10:47:55.104 UTC · 3 min ago`
 * @param {{at: TimeValue, emptyText?: string}} props */
export function DateTime({ at, emptyText = "–" }) {
  const ms = toMillis(at);
  if (ms === null) return html`<span class="faint">${emptyText}</span>`;
  return html`<time class="number" datetime=${toIsoTime(ms)}>${formatDateTime(ms)} <span class="faint">· ${formatRelative(ms)}</span></time>`;
}

/** The duration from start to end, or until now.
 * @param {{from?: TimeValue, to?: TimeValue, ms?: number | null}} props */
export function Duration({ from, to, ms }) {
  const startMillis = toMillis(from);
  const elapsed = ms ?? (startMillis === null ? null : (toMillis(to) ?? now.value) - startMillis);
  if (elapsed === null) return html`<span class="faint">–</span>`;
  return html`<span class="number">${formatDuration(Math.max(0, elapsed))}</span>`;
}

/** @param {number} ms */
function toIsoTime(ms) {
  return new Date(ms).toISOString();
}
