// Reads the lanes of an object: the head of each, and why it waits.

import { api, encodeSegment } from "../../data/api.js";

/** @typedef {import("../../data/api-types.js").Task} Task */
/** @typedef {import("../../data/api-types.js").TaskPage} TaskPage */
/** @typedef {import("../../data/api-types.js").TaskWhy} TaskWhy */
/** @typedef {import("../../data/api-types.js").ObjectDetail} ObjectDetail */
/** @typedef {import("../../data/api-types.js").Handler & {order: string | null, on_error: string | null}} Handler */

/** `ordered`: its tasks run one after the other. `halted`: the head failed and halts the lane. `more`: not all
 * waiting tasks were counted. `why` belongs to the head.
 * @typedef {{handler: string, ordered: boolean, head: Task, why: TaskWhy | null, halted: boolean, waiting: number,
 *   more: boolean}} Lane */

/** `more`: there may be more lanes.
 * @typedef {{eventId: number, lanes: Lane[], missing: Task[], tasks: Map<number, Task[]>, more: boolean}} ObjectLanes
 * */

/** @typedef {(narrow?: {status?: string, handler?: string}) => Promise<TaskPage>} ListTasks */

const PAGE_SIZE = 1000;
/** Maximum unordered handlers that are queried, and heads that are explained. */
const MAX_UNORDERED_HANDLERS = 20;
const MAX_EXPLAINED_LANES = 40;

/** @param {string} key @param {string} tenant @param {AbortSignal} signal
 * @returns {Promise<ObjectLanes>} */
export async function readLanes(key, tenant, signal) {
  /** @type {ListTasks} */
  const list = (narrow) => api.get("/api/v1/tasks", { query: { key, tenant, ...narrow, limit: PAGE_SIZE }, signal });
  // The events are read elsewhere: 1 is the smallest limit.
  const [object, all, missing, handlerList] = await Promise.all([
    /** @type {Promise<ObjectDetail | null>} */ (api.get(`/api/v1/objects/${encodeSegment(key)}`, { query: { tenant, limit: 1 }, signal }).catch(nullIfNotFound)),
    list(), list({ status: "missing" }),
    /** @type {Promise<{handlers: Handler[]}>} */ (api.get("/api/v1/handlers", { signal })),
  ]);
  const ordered = (object?.lanes ?? []).map((lane) => ({ ...lane, ordered: true, why: null }));
  const unordered = await readUnorderedTasks(all, new Set(ordered.map((lane) => lane.handler)), handlerList.handlers, list);
  const lanes = [...ordered, ...unordered.lanes].sort((a, b) => Number(b.halted) - Number(a.halted));
  return {
    eventId: Math.min(all.eventId, object?.eventId ?? all.eventId),
    lanes: await Promise.all(lanes.map((lane, index) => (index < MAX_EXPLAINED_LANES ? explainLane(lane, signal) : lane))),
    missing: missing.tasks,
    tasks: groupTasksByEvent(all.tasks),
    more: object?.moreLanes === true || unordered.more,
  };
}

/** Reads tasks of handlers without ordering. They are among all tasks of the object; if these exceed a page, each
 * such handler is queried.
 * @param {TaskPage} all @param {Set<string>} orderedHandlers @param {Handler[]} handlers @param {ListTasks} list
 * @returns {Promise<{lanes: Lane[], more: boolean}>} */
async function readUnorderedTasks(all, orderedHandlers, handlers, list) {
  const unordered = new Set(handlers.filter(({ order }) => order === "none").map(({ name }) => name));
  const busyHandlers = handlers.filter(({ name, counts }) => unordered.has(name) && counts.ready + counts.waiting + counts.scheduled > 0);
  const pages = all.next === null ? [all] : await Promise.all([
    list({ status: "RUNNING" }), ...busyHandlers.slice(0, MAX_UNORDERED_HANDLERS).map(({ name }) => list({ status: "SCHEDULED", handler: name })),
  ]);
  const found = pages.flatMap(({ tasks }) => tasks).filter(({ status, handler }) => (status === "RUNNING" || status === "SCHEDULED") && !orderedHandlers.has(handler));
  const lanes = [...new Set(found.map((task) => task.handler))].map((handler) => {
    const handlerTasks = found.filter((task) => task.handler === handler);
    const head = handlerTasks.find((task) => task.status === "RUNNING") ?? handlerTasks[handlerTasks.length - 1];
    return { handler, ordered: !unordered.has(handler), head, why: null, halted: false, waiting: handlerTasks.length - 1, more: false };
  });
  return { lanes, more: busyHandlers.length > MAX_UNORDERED_HANDLERS || pages.some((page) => page.next !== null) };
}

/** Adds why the head of the lane waits. @param {Lane} lane @param {AbortSignal} signal
 * @returns {Promise<Lane>} */
async function explainLane(lane, signal) {
  return lane.head.status === "RUNNING" ? lane : { ...lane, why: await readWhy(lane.head.id, signal) };
}

/** Null if the task has expired.
 * @param {string} id @param {AbortSignal} signal
 * @returns {Promise<TaskWhy | null>} */
export function readWhy(id, signal) {
  return api.get(`/api/v1/tasks/${encodeSegment(id)}/why`, { signal }).catch(nullIfNotFound);
}

/** @param {{status?: number}} error */
function nullIfNotFound(error) {
  if (error.status === 404) return null;
  throw error;
}

/** @param {Task[]} tasks */
function groupTasksByEvent(tasks) {
  /** @type {Map<number, Task[]>} */
  const found = new Map();
  for (const task of tasks) {
    if (task.event_id === null) continue;
    found.set(task.event_id, [...(found.get(task.event_id) ?? []), task]);
  }
  return found;
}
