// The newest failures, in pages up to a bound, and then as they happen.

import { api } from "../../data/api.js";
import { useLiveData } from "../../data/live-data.js";
import { matchesTaskFilter } from "../../data/tasks.js";
import { failureFromTask, failureFromChange } from "./groups.js";

/** @typedef {import("./groups.js").Failure} Failure */
/** @typedef {import("../../data/api-types.js").TaskPage} TaskPage */
/** @typedef {import("../../data/tasks.js").TaskFilter} TaskFilter */

/** How many tasks an answer has, and how many answers are read at first and more at a time. */
const PAGE_SIZE = 1000;
export const FIRST_PAGES = 5;
/** How many are held at most. */
export const MAX_PAGES = 50;

/** `more`: there are older ones that were not looked at, made before `until`.
 * @typedef {{eventId: number, failures: Map<string, Failure>, more: boolean, until: string}} LoadedFailures */

/** @param {TaskFilter} wanted @param {number} pages
 * @returns {import("../../data/live-data.js").LiveData<LoadedFailures>} */
export function useFailures(wanted, pages) {
  return useLiveData({
    read: (signal) => readFailures(wanted, pages, signal),
    filter: { tasks: true, tenant: wanted.tenant },
    apply: (data, { tasks }) => {
      const next = applyChanges(data, tasks, wanted);
      // New ones are only added here: a fresh read leaves the oldest out.
      return next.failures.size > 1.5 * pages * PAGE_SIZE ? null : next;
    },
    // Nodes do not tell of each other's tasks. Reading very many again is left to the person.
    every: pages <= FIRST_PAGES ? 20_000 : undefined,
  }, [JSON.stringify(wanted), pages]);
}

/** @param {TaskFilter} wanted @param {number} pages @param {AbortSignal} signal
 * @returns {Promise<LoadedFailures>} */
async function readFailures(wanted, pages, signal) {
  /** @type {Map<string, Failure>} */
  const failures = new Map();
  /** @type {string | null} */
  let cursor = null;
  let eventId = 0;
  let until = "";
  for (let number = 0; number < pages; number += 1) {
    const page = /** @type {TaskPage} */ (await api.get("/api/v1/tasks", { query: { ...wanted, status: "FAILED", limit: PAGE_SIZE, cursor }, signal }));
    eventId ||= page.eventId;
    for (const task of page.tasks) failures.set(task.id, failureFromTask(task));
    until = page.tasks.at(-1)?.created_at ?? until;
    cursor = page.next;
    if (cursor === null) break;
  }
  return { eventId, failures, more: cursor !== null, until };
}

/** @param {LoadedFailures} data @param {import("../../data/filter.js").TaskChange[]} changes @param {TaskFilter} wanted */
function applyChanges(data, changes, wanted) {
  const { start, end, ...rest } = wanted;
  /** @type {Map<string, Failure> | null} */
  let next = null;
  for (const change of changes) {
    const failed = change.status === "FAILED" && matchesTaskFilter(rest, change);
    if (!failed && !data.failures.has(change.id)) continue;
    next ??= new Map(data.failures);
    // When one was made is not told: of a stretch of time, those that are known are kept current.
    if (!failed) next.delete(change.id);
    else if ((!start && !end) || next.has(change.id)) next.set(change.id, failureFromChange(change));
  }
  return next ? { ...data, failures: next } : data;
}
