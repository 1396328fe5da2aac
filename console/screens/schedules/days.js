// Days in the selected time zone.

import { timeZoneSetting } from "../../data/settings.js";
import { computed } from "../../parts/ui.js";

const dayFormat = computed(() => new Intl.DateTimeFormat("en-GB", {
  weekday: "short", day: "numeric", month: "short", timeZone: timeZoneSetting.value === "utc" ? "UTC" : undefined,
}));

/** `Mon 16 Nov`
 * @param {number} ms */
export function formatDay(ms) {
  return dayFormat.value.format(ms).replace(",", "");
}

/** Midnights of the day of `ms` and the following days, and the end of the last day.
 * @param {number} ms @param {number} days */
export function listMidnights(ms, days) {
  const date = new Date(ms);
  const isUtc = timeZoneSetting.value === "utc";
  return Array.from({ length: days + 1 }, (_, index) => (isUtc
    ? Date.UTC(date.getUTCFullYear(), date.getUTCMonth(), date.getUTCDate() + index)
    : new Date(date.getFullYear(), date.getMonth(), date.getDate() + index).getTime()));
}

/** The start of a day written like `2026-11-16`; null if it is not a day.
 * @param {string | undefined} text */
export function parseDay(text) {
  const match = /^(\d{4})-(\d\d)-(\d\d)$/.exec(text ?? "");
  if (!match) return null;
  const [year, month, day] = match.slice(1).map(Number);
  return timeZoneSetting.value === "utc" ? Date.UTC(year, month - 1, day) : new Date(year, month - 1, day).getTime();
}
