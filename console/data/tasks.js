// Task filters, and the actions on tasks.

import { api, encodeSegment } from "./api.js";

/** @typedef {import("./api-types.js").Task} Task */
/** @typedef {import("./api-types.js").TaskChange} TaskChange */

/** Fields of a task filter, named as in the API and in addresses. */
export const TASK_FILTER_FIELDS = /** @type {const} */ (["status", "handler", "source", "collection", "tenant", "key", "event", "start", "end"]);

/** A filter of tasks. @typedef {Partial<Record<typeof TASK_FILTER_FIELDS[number], string>>} TaskFilter */

/** Reads the task filter from the query of an address.
 * @param {Record<string, string>} query
 * @returns {TaskFilter} */
export function taskFilterFromQuery(query) {
  return Object.fromEntries(TASK_FILTER_FIELDS.filter((name) => query[name]).map((name) => [name, query[name]]));
}

/** Whether a changed task may match the filter. A change has no creation time, so `start` and `end` are left to the
 * server.
 * @param {TaskFilter} filter @param {TaskChange} change */
export function matchesTaskFilter({ status, handler, source, collection, tenant, key, event }, change) {
  return (!status || status === change.status || status === change.state)
    && (!handler || handler === change.handler)
    && (!source || source === change.handler)
    && (!collection || collection === change.collection)
    && (!tenant || tenant === change.tenant)
    && (!key || key === change.key)
    && (!event || event === String(change.event_id));
}

/** Returns the task with a streamed change applied.
 * @param {Task} task @param {TaskChange} change
 * @returns {Task} */
export function applyTaskChange(task, { status, state, attempt, error, delay_until, time }) {
  const startsAttempt = status === "RUNNING" && (task.status !== "RUNNING" || task.attempt !== attempt);
  const isEnded = status === "SUCCESS" || status === "FAILED" || status === "CANCELED";
  return {
    ...task, status, state, attempt, delay_until,
    error: error ?? (status === "SUCCESS" ? null : task.error),
    started_at: startsAttempt ? time : task.started_at,
    finished_at: isEnded ? time : "",
  };
}

/** Whether the task is a step of an order. An ended step cannot be run again: its order has moved on or can be resumed.
 * @param {{key: string | null, event_id: number | null}} task */
export function isOrderStepTask({ key, event_id }) {
  return event_id === null && key !== null && key.startsWith("/");
}

/** @param {Task} task */
export function canRetryTask(task) {
  return task.state === "error" && !isOrderStepTask(task);
}

/** Whether a cancel may succeed. The server cancels failed tasks only if they halt their lane.
 * @param {Task} task */
export function canCancelTask(task) {
  return task.state !== "done" && task.status !== "CANCELED";
}

/** Whether the task has reached a final state. @param {{state: string}} task */
export function hasTaskEnded({ state }) {
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

/** Maximum pages read to collect ids. */
const MAX_PAGES_FOR_IDS = 100;

/** Collects ids of matching tasks, newest first, up to `maxIds`.
 * @param {TaskFilter} filter @param {number} maxIds @param {(task: Task) => boolean} isIncluded
 * @returns {Promise<{ids: string[], hasMore: boolean}>} */
export async function collectTaskIds(filter, maxIds, isIncluded) {
  /** @type {string[]} */
  const ids = [];
  /** @type {string | null} */
  let cursor = null;
  let pages = 0;
  do {
    const page = /** @type {{tasks: Task[], next: string | null}} */ (
      await api.get("/api/v1/tasks", { query: { ...filter, limit: 1000, cursor } }));
    ids.push(...page.tasks.filter(isIncluded).map((task) => task.id));
    cursor = page.next;
    pages += 1;
  } while (cursor !== null && ids.length < maxIds && pages < MAX_PAGES_FOR_IDS);
  return { ids: ids.slice(0, maxIds), hasMore: cursor !== null || ids.length > maxIds };
}
