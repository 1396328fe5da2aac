// Formats times and durations for people.

import { computed, signal } from "../vendor/signals.js";
import { timeZoneSetting } from "./settings.js";

/** The current time, updated every second while the page is visible. */
export const now = signal(Date.now());
setInterval(() => {
  if (!document.hidden) now.value = Date.now();
}, 1000);

/** Converts a time of the API: text, milliseconds, or an EventId (microseconds).
 * @param {string | number | null | undefined} time
 * @returns {number | null} milliseconds since 1970 */
export function toMillis(time) {
  if (time === null || time === undefined || time === "") return null;
  if (typeof time === "number") return time > 1e14 ? time / 1000 : time;
  const parsed = Date.parse(time);
  return Number.isNaN(parsed) ? null : parsed;
}

const dateFormats = computed(() => {
  const timeZone = timeZoneSetting.value === "utc" ? "UTC" : undefined;
  /** @type {Intl.DateTimeFormatOptions} */
  const timeOptions = { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23", timeZone };
  /** @type {Intl.DateTimeFormatOptions} */
  const dayOptions = { year: "numeric", month: "2-digit", day: "2-digit", timeZone };
  return {
    timeWithMillis: new Intl.DateTimeFormat("en-GB", { ...timeOptions, fractionalSecondDigits: 3 }),
    time: new Intl.DateTimeFormat("en-GB", timeOptions),
    day: new Intl.DateTimeFormat("sv-SE", dayOptions),
    zone: timeZoneSetting.value === "utc" ? "UTC" : (Intl.DateTimeFormat().resolvedOptions().timeZone ?? "local"),
  };
});

/** `2026-11-15 10:47:55.104 UTC`
 * @param {number} ms */
export function formatDateTime(ms) {
  const { timeWithMillis, day, zone } = dateFormats.value;
  return `${day.format(ms)} ${timeWithMillis.format(ms)} ${zone}`;
}

/** `10:47:55.104`, with the day before it if it is not today.
 * @param {number} ms @param {boolean} [withMillis] with milliseconds */
export function formatTimeWithDayUnlessToday(ms, withMillis = true) {
  const { timeWithMillis, time, day } = dateFormats.value;
  const text = (withMillis ? timeWithMillis : time).format(ms);
  const date = day.format(ms);
  return date === day.format(Date.now()) ? text : `${date} ${text}`;
}

/** `10:47:55`, without the day.
 * @param {number} ms */
export function formatTimeOfDay(ms) {
  return dateFormats.value.time.format(ms);
}

/** `2026-11-15`
 * @param {number} ms */
export function formatDate(ms) {
  return dateFormats.value.day.format(ms);
}

/** @type {[number, string][]} */
const DURATION_UNITS = [[86_400_000, "d"], [3_600_000, "h"], [60_000, "min"], [1000, "s"]];

/** A duration in at most two units: `1 h 5 min`, `3.2 s`, `12 ms`.
 * @param {number} ms */
export function formatDuration(ms) {
  if (!Number.isFinite(ms)) return "–";
  const magnitude = Math.abs(ms);
  if (magnitude < 1) return magnitude === 0 ? "0 ms" : `${formatWithMaxDigits(ms, 2)} ms`;
  if (magnitude < 1000) return `${formatWithMaxDigits(ms, magnitude < 10 ? 1 : 0)} ms`;
  if (magnitude < 10_000) return `${formatWithMaxDigits(ms / 1000, 1)} s`;
  const unitIndex = DURATION_UNITS.findIndex(([unit]) => magnitude >= unit);
  const [unit, name] = DURATION_UNITS[unitIndex];
  if (name === "s") return `${Math.floor(ms / 1000)} s`;
  const [smallerUnit, smallerName] = DURATION_UNITS[unitIndex + 1];
  const rest = Math.floor((magnitude % unit) / smallerUnit);
  const whole = `${Math.trunc(ms / unit)} ${name}`;
  return rest ? `${whole} ${rest} ${smallerName}` : whole;
}

/** @param {number} number @param {number} digits */
function formatWithMaxDigits(number, digits) {
  return String(Number(number.toFixed(digits)));
}

/** A duration in one unit, for narrow columns.
 * @param {number} ms */
export function formatShortDuration(ms) {
  const found = DURATION_UNITS.find(([unit]) => Math.abs(ms) >= unit && unit > 1000);
  return found ? `${Math.floor(ms / found[0])} ${found[1]}` : formatDuration(ms);
}

/** `3 min ago`, `in 2 h`, `now`: in one unit.
 * @param {number} ms @param {number} [reference] */
export function formatRelative(ms, reference = now.value) {
  const difference = ms - reference;
  const magnitude = Math.abs(difference);
  if (magnitude < 1500) return "now";
  const [unit, name] = DURATION_UNITS.find(([unit]) => magnitude >= unit) ?? [1000, "s"];
  const text = `${Math.floor(magnitude / unit)} ${name}`;
  return difference < 0 ? `${text} ago` : `in ${text}`;
}

/** Converts to the value of a `datetime-local` input, in the selected zone.
 * @param {string} time */
export function toDateTimeInputValue(time) {
  const ms = toMillis(time);
  if (ms === null) return "";
  const zoneOffset = timeZoneSetting.value === "utc" ? 0 : new Date(ms).getTimezoneOffset() * 60_000;
  return new Date(ms - zoneOffset).toISOString().slice(0, 19);
}

/** Converts the value of a `datetime-local` input for the API; empty if it is not a time.
 * @param {string} text */
export function fromDateTimeInputValue(text) {
  const ms = Date.parse(timeZoneSetting.value === "utc" && text ? `${text}Z` : text);
  return Number.isNaN(ms) ? "" : new Date(ms).toISOString();
}
