// Tasks: which of them a filter means, what can be done to them, and doing it.

import { api, encodeSegment } from "./api.js";

/** @typedef {import("./api-types.js").Task} Task */
/** @typedef {import("./filter.js").TaskChange} TaskChange */

/** What lists of tasks can be narrowed by, by the names that the API and addresses have for it. */
export const TASK_FILTER_FIELDS = /** @type {const} */ (["status", "handler", "source", "collection", "tenant", "key", "event", "start", "end"]);

/** Which tasks are wanted. @typedef {Partial<Record<typeof TASK_FILTER_FIELDS[number], string>>} TaskFilter */

/** What of an address narrows a list of tasks.
 * @param {Record<string, string>} query
 * @returns {TaskFilter} */
export function taskFilterFromQuery(query) {
  return Object.fromEntries(TASK_FILTER_FIELDS.filter((name) => query[name]).map((name) => [name, query[name]]));
}

/** Whether a task that changed may be among those that are wanted. When it was made is not told with a change: the
 * server decides on that.
 * @param {TaskFilter} wanted @param {TaskChange} change */
export function matchesTaskFilter({ status, handler, source, collection, tenant, key, event }, change) {
  return (!status || status === change.status || status === change.state)
    && (!handler || handler === change.handler)
    && (!source || source === change.handler)
    && (!collection || collection === change.collection)
    && (!tenant || tenant === change.tenant)
    && (!key || key === change.key)
    && (!event || event === String(change.event_id));
}

/** A task after a change that the stream told of.
 * @param {Task} task @param {TaskChange} change
 * @returns {Task} */
export function applyTaskChange(task, { status, state, attempt, error, delay_until, time }) {
  const begins = status === "RUNNING" && (task.status !== "RUNNING" || task.attempt !== attempt);
  const ended = status === "SUCCESS" || status === "FAILED" || status === "CANCELED";
  return {
    ...task, status, state, attempt, delay_until,
    error: error ?? (status === "SUCCESS" ? null : task.error),
    started_at: begins ? time : task.started_at,
    finished_at: ended ? time : "",
  };
}

/** A step of an order: once it has ended it is not run again, its order goes on.
 * @param {{key: string | null, event_id: number | null}} task */
export function isOrderStep({ key, event_id }) {
  return event_id === null && key !== null && key.startsWith("/");
}

/** @param {Task} task */
export function canRetry(task) {
  return task.state === "error" && !isOrderStep(task);
}

/** Whether ending it is worth a try. Of those that failed, the server ends the ones that hold their lane.
 * @param {Task} task */
export function canCancel(task) {
  return task.state !== "done" && task.status !== "CANCELED";
}

/** Whether nothing more happens to it by itself. @param {{state: string}} task */
export function hasEnded({ state }) {
  return state === "done" || state === "error" || state === "missing";
}

/** @param {string} id */
export function retryTask(id) {
  return api.post(`/api/v1/tasks/${encodeSegment(id)}/retry`);
}

/** @param {string} id */
export function cancelTask(id) {
  return api.post(`/api/v1/tasks/${encodeSegment(id)}/cancel`);
}

/** Answers that are read at most to gather ids. */
const MAX_PAGES = 100;

/** The ids of tasks that are wanted, the newest first, up to so many.
 * @param {TaskFilter} wanted @param {number} most @param {(task: Task) => boolean} keep
 * @returns {Promise<{ids: string[], more: boolean}>} */
export async function collectTaskIds(wanted, most, keep) {
  /** @type {string[]} */
  const ids = [];
  /** @type {string | null} */
  let cursor = null;
  let pages = 0;
  do {
    const page = /** @type {{tasks: Task[], next: string | null}} */ (
      await api.get("/api/v1/tasks", { query: { ...wanted, limit: 1000, cursor } }));
    ids.push(...page.tasks.filter(keep).map((task) => task.id));
    cursor = page.next;
    pages += 1;
  } while (cursor !== null && ids.length < most && pages < MAX_PAGES);
  return { ids: ids.slice(0, most), more: cursor !== null || ids.length > most };
}
