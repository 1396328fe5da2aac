// Reads the newest failed tasks in pages, and follows new ones.

import { api } from "../../data/api.js";
import { useLiveData } from "../../data/live-data.js";
import { matchesTaskFilter } from "../../data/tasks.js";
import { failureFromTask, failureFromChange } from "./groups.js";

/** @typedef {import("./groups.js").Failure} Failure */
/** @typedef {import("../../data/api-types.js").TaskPage} TaskPage */
/** @typedef {import("../../data/tasks.js").TaskFilter} TaskFilter */

/** Tasks per page, and pages read at first and for each click. */
const PAGE_SIZE = 1000;
export const INITIAL_PAGE_COUNT = 5;
/** Maximum pages. */
export const MAX_PAGE_COUNT = 50;

/** `hasMore`: older tasks, created before `oldestCreatedAt`, were not read.
 * @typedef {{eventId: number, failures: Map<string, Failure>, hasMore: boolean, oldestCreatedAt: string}} LoadedFailures */

/** @param {TaskFilter} filter @param {number} pages
 * @returns {import("../../data/live-data.js").LiveData<LoadedFailures>} */
export function useFailures(filter, pages) {
  return useLiveData({
    read: (signal) => readFailures(filter, pages, signal),
    filter: { tasks: true, tenant: filter.tenant },
    apply: (data, { tasks }) => {
      const next = applyTaskChangesToFailures(data, tasks, filter);
      // Changes add failures without limit: a new read drops the oldest.
      return next.failures.size > 1.5 * pages * PAGE_SIZE ? null : next;
    },
    // A node does not stream task changes of its peers. Many pages are not polled: the user reloads them.
    pollInterval: pages <= INITIAL_PAGE_COUNT ? 20_000 : undefined,
  }, [JSON.stringify(filter), pages]);
}

/** @param {TaskFilter} filter @param {number} pages @param {AbortSignal} signal
 * @returns {Promise<LoadedFailures>} */
async function readFailures(filter, pages, signal) {
  /** @type {Map<string, Failure>} */
  const failures = new Map();
  /** @type {string | null} */
  let cursor = null;
  let eventId = 0;
  let oldestCreatedAt = "";
  for (let number = 0; number < pages; number += 1) {
    const page = /** @type {TaskPage} */ (await api.get("/api/v1/tasks", { query: { ...filter, status: "FAILED", limit: PAGE_SIZE, cursor }, signal }));
    eventId ||= page.eventId;
    for (const task of page.tasks) failures.set(task.id, failureFromTask(task));
    oldestCreatedAt = page.tasks.at(-1)?.created_at ?? oldestCreatedAt;
    cursor = page.next;
    if (cursor === null) break;
  }
  return { eventId, failures, hasMore: cursor !== null, oldestCreatedAt };
}

/** @param {LoadedFailures} data @param {import("../../data/api-types.js").TaskChange[]} changes @param {TaskFilter}
 * filter */
function applyTaskChangesToFailures(data, changes, filter) {
  const { start, end, ...rest } = filter;
  /** @type {Map<string, Failure> | null} */
  let updatedFailures = null;
  for (const change of changes) {
    const isFailure = change.status === "FAILED" && matchesTaskFilter(rest, change);
    if (!isFailure && !data.failures.has(change.id)) continue;
    updatedFailures ??= new Map(data.failures);
    // A change has no creation time: with a time range only loaded failures are updated.
    if (!isFailure) updatedFailures.delete(change.id);
    else if ((!start && !end) || updatedFailures.has(change.id)) updatedFailures.set(change.id, failureFromChange(change));
  }
  return updatedFailures ? { ...data, failures: updatedFailures } : data;
}
