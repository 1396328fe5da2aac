// A week of planned times: what fires often as a whole, the rest day by day.

import { formatTimeOfDay } from "../../data/time.js";

/** @typedef {import("../../data/api-types.js").Schedule} Schedule */

/** What fires more often than this on a day is told in one line. */
export const MAX_ENTRIES_PER_DAY = 8;
/** So many times of a week are enough to know that. */
export const FREQUENT_FIRES_PER_WEEK = MAX_ENTRIES_PER_DAY * 7 + 1;

/** Several times of one schedule in a row are one entry, from the first to the last.
 * @typedef {{schedule: Schedule, at: number, until: number, times: number}} AgendaEntry */
/** @typedef {{from: number, entries: AgendaEntry[]}} AgendaDay */

/** @param {Schedule[]} schedules @param {number[]} midnights
 * @returns {{often: Schedule[], days: AgendaDay[]}} */
export function buildAgenda(schedules, midnights) {
  /** @type {AgendaDay[]} */
  const days = midnights.slice(0, -1).map((from) => ({ from, entries: [] }));
  /** @type {Schedule[]} */
  const often = [];
  for (const schedule of schedules) {
    const times = schedule.next.map((at) => Date.parse(at)).filter((at) => at >= midnights[0] && at < (midnights.at(-1) ?? 0));
    if (times.length >= FREQUENT_FIRES_PER_WEEK) {
      often.push(schedule);
      continue;
    }
    days.forEach((day, index) => {
      const own = times.filter((at) => at >= day.from && at < midnights[index + 1]);
      if (own.length > MAX_ENTRIES_PER_DAY) day.entries.push({ schedule, at: own[0], until: own[own.length - 1], times: own.length });
      else day.entries.push(...own.map((at) => ({ schedule, at, until: at, times: 1 })));
    });
  }
  for (const day of days) day.entries.sort((a, b) => a.at - b.at || a.schedule.name.localeCompare(b.schedule.name));
  return { often, days };
}

/** `06:00`, with the seconds where there are some. @param {number} ms */
export function formatHourMinute(ms) {
  return formatTimeOfDay(ms).replace(/:00$/, "");
}
