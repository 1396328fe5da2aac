// Groups the planned times of a week: frequent schedules in one row, the others by day.

import { formatTimeOfDay } from "../../data/time.js";

/** @typedef {import("../../data/api-types.js").Schedule} Schedule */

/** More fires on a day become one entry. */
export const MAX_ENTRIES_PER_DAY = 8;
/** With this many fires a week, a schedule is listed as frequent. */
export const MIN_FREQUENT_FIRES_PER_WEEK = MAX_ENTRIES_PER_DAY * 7 + 1;

/** An entry is one planned time, or several of one schedule from `at` to `until`.
 * @typedef {{schedule: Schedule, at: number, until: number, times: number}} AgendaEntry */
/** @typedef {{from: number, entries: AgendaEntry[]}} AgendaDay */

/** @param {Schedule[]} schedules @param {number[]} midnights
 * @returns {{frequent: Schedule[], days: AgendaDay[]}} */
export function buildAgenda(schedules, midnights) {
  /** @type {AgendaDay[]} */
  const days = midnights.slice(0, -1).map((from) => ({ from, entries: [] }));
  /** @type {Schedule[]} */
  const frequentSchedules = [];
  for (const schedule of schedules) {
    const times = schedule.next.map((at) => Date.parse(at)).filter((at) => at >= midnights[0] && at < (midnights.at(-1) ?? 0));
    if (times.length >= MIN_FREQUENT_FIRES_PER_WEEK) {
      frequentSchedules.push(schedule);
      continue;
    }
    days.forEach((day, index) => {
      const timesOfDay = times.filter((at) => at >= day.from && at < midnights[index + 1]);
      if (timesOfDay.length > MAX_ENTRIES_PER_DAY) day.entries.push({ schedule, at: timesOfDay[0], until: timesOfDay[timesOfDay.length - 1], times: timesOfDay.length });
      else day.entries.push(...timesOfDay.map((at) => ({ schedule, at, until: at, times: 1 })));
    });
  }
  for (const day of days) day.entries.sort((a, b) => a.at - b.at || a.schedule.name.localeCompare(b.schedule.name));
  return { frequent: frequentSchedules, days };
}

/** `06:00`, with seconds if they are not zero. @param {number} ms */
export function formatHourMinute(ms) {
  return formatTimeOfDay(ms).replace(/:00$/, "");
}
