// The newest failures, in pages up to a bound, and then as they happen.

import { api } from "../../data/api.js";
import { useFollowed } from "../../data/follow.js";
import { fits } from "../../data/tasks.js";
import { failureOf, failureOfChange } from "./groups.js";

/** @typedef {import("./groups.js").Failure} Failure */
/** @typedef {import("../../data/bodies.js").TaskPage} TaskPage */
/** @typedef {import("../../data/tasks.js").Wanted} Wanted */

/** How many tasks an answer has, and how many answers are read at first and more at a time. */
const PAGE = 1000;
export const PAGES = 5;
/** How many are held at most. */
export const MOST_PAGES = 50;

/** `more`: there are older ones that were not looked at, made before `until`.
 * @typedef {{eventId: number, failures: Map<string, Failure>, more: boolean, until: string}} Looked */

/** @param {Wanted} wanted @param {number} pages
 * @returns {import("../../data/follow.js").Followed<Looked>} */
export function useFailures(wanted, pages) {
  return useFollowed({
    read: (signal) => read(wanted, pages, signal),
    filter: { tasks: true, tenant: wanted.tenant },
    apply: (data, { tasks }) => {
      const next = applied(data, tasks, wanted);
      // New ones are only added here: a fresh read leaves the oldest out.
      return next.failures.size > 1.5 * pages * PAGE ? null : next;
    },
    // Nodes do not tell of each other's tasks. Reading very many again is left to the person.
    every: pages <= PAGES ? 20_000 : undefined,
  }, [JSON.stringify(wanted), pages]);
}

/** @param {Wanted} wanted @param {number} pages @param {AbortSignal} signal
 * @returns {Promise<Looked>} */
async function read(wanted, pages, signal) {
  /** @type {Map<string, Failure>} */
  const failures = new Map();
  /** @type {string | null} */
  let cursor = null;
  let eventId = 0;
  let until = "";
  for (let number = 0; number < pages; number += 1) {
    const page = /** @type {TaskPage} */ (await api.get("/api/v1/tasks", { query: { ...wanted, status: "FAILED", limit: PAGE, cursor }, signal }));
    eventId ||= page.eventId;
    for (const task of page.tasks) failures.set(task.id, failureOf(task));
    until = page.tasks.at(-1)?.created_at ?? until;
    cursor = page.next;
    if (cursor === null) break;
  }
  return { eventId, failures, more: cursor !== null, until };
}

/** @param {Looked} data @param {import("../../data/filter.js").Change[]} changes @param {Wanted} wanted */
function applied(data, changes, wanted) {
  const { start, end, ...rest } = wanted;
  /** @type {Map<string, Failure> | null} */
  let next = null;
  for (const change of changes) {
    const failed = change.status === "FAILED" && fits(rest, change);
    if (!failed && !data.failures.has(change.id)) continue;
    next ??= new Map(data.failures);
    // When one was made is not told: of a stretch of time, those that are known are kept current.
    if (!failed) next.delete(change.id);
    else if ((!start && !end) || next.has(change.id)) next.set(change.id, failureOfChange(change));
  }
  return next ? { ...data, failures: next } : data;
}
