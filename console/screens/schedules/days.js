// Days, as the zone that was chosen has them.

import { zoneSetting } from "../../data/settings.js";
import { computed } from "../../parts/ui.js";

const dayFormat = computed(() => new Intl.DateTimeFormat("en-GB", {
  weekday: "short", day: "numeric", month: "short", timeZone: zoneSetting.value === "utc" ? "UTC" : undefined,
}));

/** `Mon 16 Nov`
 * @param {number} ms */
export function formatDay(ms) {
  return dayFormat.value.format(ms).replace(",", "");
}

/** When days begin: that of `ms` and so many after it, and the end of the last.
 * @param {number} ms @param {number} days */
export function listMidnights(ms, days) {
  const date = new Date(ms);
  const utc = zoneSetting.value === "utc";
  return Array.from({ length: days + 1 }, (_, index) => (utc
    ? Date.UTC(date.getUTCFullYear(), date.getUTCMonth(), date.getUTCDate() + index)
    : new Date(date.getFullYear(), date.getMonth(), date.getDate() + index).getTime()));
}

/** The beginning of a day that is written like `2026-11-16`; null if it is no such day.
 * @param {string | undefined} text */
export function parseDay(text) {
  const found = /^(\d{4})-(\d\d)-(\d\d)$/.exec(text ?? "");
  if (!found) return null;
  const [year, month, day] = found.slice(1).map(Number);
  return zoneSetting.value === "utc" ? Date.UTC(year, month - 1, day) : new Date(year, month - 1, day).getTime();
}
