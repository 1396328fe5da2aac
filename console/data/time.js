// Formats times and durations for people.

import { computed, signal } from "../vendor/signals.js";
import { zoneSetting } from "./settings.js";

/** The current time, updated every second while the page is visible. */
export const now = signal(Date.now());
setInterval(() => {
  if (!document.hidden) now.value = Date.now();
}, 1000);

/** Converts a time of the API: text, milliseconds, or an EventId (microseconds).
 * @param {string | number | null | undefined} at
 * @returns {number | null} milliseconds since 1970 */
export function toMillis(at) {
  if (at === null || at === undefined || at === "") return null;
  if (typeof at === "number") return at > 1e14 ? at / 1000 : at;
  const parsed = Date.parse(at);
  return Number.isNaN(parsed) ? null : parsed;
}

const dateFormats = computed(() => {
  const timeZone = zoneSetting.value === "utc" ? "UTC" : undefined;
  /** @type {Intl.DateTimeFormatOptions} */
  const clock = { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23", timeZone };
  /** @type {Intl.DateTimeFormatOptions} */
  const day = { year: "numeric", month: "2-digit", day: "2-digit", timeZone };
  return {
    clock: new Intl.DateTimeFormat("en-GB", { ...clock, fractionalSecondDigits: 3 }),
    seconds: new Intl.DateTimeFormat("en-GB", clock),
    day: new Intl.DateTimeFormat("sv-SE", day),
    zone: zoneSetting.value === "utc" ? "UTC" : (Intl.DateTimeFormat().resolvedOptions().timeZone ?? "local"),
  };
});

/** `2026-11-15 10:47:55.104 UTC`
 * @param {number} ms */
export function formatDateTime(ms) {
  const { clock, day, zone } = dateFormats.value;
  return `${day.format(ms)} ${clock.format(ms)} ${zone}`;
}

/** `10:47:55.104`, with the day before it if it is not today.
 * @param {number} ms @param {boolean} [withMillis] with milliseconds */
export function formatTime(ms, withMillis = true) {
  const { clock, seconds, day } = dateFormats.value;
  const time = (withMillis ? clock : seconds).format(ms);
  const date = day.format(ms);
  return date === day.format(Date.now()) ? time : `${date} ${time}`;
}

/** `10:47:55`, without the day.
 * @param {number} ms */
export function formatTimeOfDay(ms) {
  return dateFormats.value.seconds.format(ms);
}

/** `2026-11-15`
 * @param {number} ms */
export function formatDate(ms) {
  return dateFormats.value.day.format(ms);
}

/** @type {[number, string][]} */
const UNITS = [[86_400_000, "d"], [3_600_000, "h"], [60_000, "min"], [1000, "s"]];

/** A duration in at most two units: `1 h 5 min`, `3.2 s`, `12 ms`.
 * @param {number} ms */
export function formatDuration(ms) {
  if (!Number.isFinite(ms)) return "–";
  const size = Math.abs(ms);
  if (size < 1) return size === 0 ? "0 ms" : `${roundDigits(ms, 2)} ms`;
  if (size < 1000) return `${roundDigits(ms, size < 10 ? 1 : 0)} ms`;
  if (size < 10_000) return `${roundDigits(ms / 1000, 1)} s`;
  const at = UNITS.findIndex(([unit]) => size >= unit);
  const [unit, name] = UNITS[at];
  if (name === "s") return `${Math.floor(ms / 1000)} s`;
  const [less, lesser] = UNITS[at + 1];
  const rest = Math.floor((size % unit) / less);
  const whole = `${Math.trunc(ms / unit)} ${name}`;
  return rest ? `${whole} ${rest} ${lesser}` : whole;
}

/** @param {number} number @param {number} digits */
function roundDigits(number, digits) {
  return String(Number(number.toFixed(digits)));
}

/** A duration in one unit, for narrow columns.
 * @param {number} ms */
export function formatShortDuration(ms) {
  const found = UNITS.find(([unit]) => Math.abs(ms) >= unit && unit > 1000);
  return found ? `${Math.floor(ms / found[0])} ${found[1]}` : formatDuration(ms);
}

/** `3 min ago`, `in 2 h`, `now`: in one unit.
 * @param {number} ms @param {number} [at] */
export function formatRelative(ms, at = now.value) {
  const difference = ms - at;
  const size = Math.abs(difference);
  if (size < 1500) return "now";
  const [unit, name] = UNITS.find(([unit]) => size >= unit) ?? [1000, "s"];
  const text = `${Math.floor(size / unit)} ${name}`;
  return difference < 0 ? `${text} ago` : `in ${text}`;
}

/** Converts to the value of a `datetime-local` input, in the selected zone.
 * @param {string} at */
export function toInputValue(at) {
  const ms = toMillis(at);
  if (ms === null) return "";
  const zoneOffset = zoneSetting.value === "utc" ? 0 : new Date(ms).getTimezoneOffset() * 60_000;
  return new Date(ms - zoneOffset).toISOString().slice(0, 19);
}

/** Converts the value of a `datetime-local` input for the API; empty if it is not a time.
 * @param {string} text */
export function fromInputValue(text) {
  const ms = Date.parse(zoneSetting.value === "utc" && text ? `${text}Z` : text);
  return Number.isNaN(ms) ? "" : new Date(ms).toISOString();
}
