// Reads the lanes and tasks of an object, and why the head of each lane waits.

import { api, encodeSegment } from "../../data/api.js";

/** @typedef {import("../../data/api-types.js").Task} Task */
/** @typedef {import("../../data/api-types.js").TaskPage} TaskPage */
/** @typedef {import("../../data/api-types.js").TaskWhy} TaskWhy */
/** @typedef {import("../../data/api-types.js").ObjectDetail} ObjectDetail */
/** @typedef {import("../../data/api-types.js").Handler & {order: string | null, on_error: string | null}} Handler */

/** `ordered`: the tasks run one after the other. `halted`: the head failed and halts the lane. `more`: not all
 * waiting tasks were counted. `why` belongs to the head.
 * @typedef {{handler: string, ordered: boolean, head: Task, why: TaskWhy | null, halted: boolean, waiting: number,
 *   more: boolean}} Lane */

/** `hasMore`: there may be more lanes.
 * @typedef {{eventId: number, lanes: Lane[], missing: Task[], tasks: Map<number, Task[]>, hasMore: boolean}} ObjectLanes */

/** @typedef {(filter?: {status?: string, handler?: string}) => Promise<TaskPage>} ListTasks */

const PAGE_SIZE = 1000;
/** Maximum unordered handlers that are queried, and lanes for which it is read why the head waits. */
const MAX_QUERIED_UNORDERED_HANDLERS = 20;
const MAX_EXPLAINED_LANES = 40;

/** @param {string} key @param {string} tenant @param {AbortSignal} signal
 * @returns {Promise<ObjectLanes>} */
export async function readObjectLanes(key, tenant, signal) {
  /** @type {ListTasks} */
  const listTasks = (filter) => api.get("/api/v1/tasks", { query: { key, tenant, ...filter, limit: PAGE_SIZE }, signal });
  // The events are read elsewhere: 1 is the smallest limit.
  const [object, allTasksPage, missing, handlerList] = await Promise.all([
    /** @type {Promise<ObjectDetail | null>} */ (api.get(`/api/v1/objects/${encodeSegment(key)}`, { query: { tenant, limit: 1 }, signal }).catch(nullIfNotFound)),
    listTasks(), listTasks({ status: "missing" }),
    /** @type {Promise<{handlers: Handler[]}>} */ (api.get("/api/v1/handlers", { signal })),
  ]);
  const orderedLanes = (object?.lanes ?? []).map((lane) => ({ ...lane, ordered: true, why: null }));
  const unorderedLanes = await readTasksOutsideLanes(allTasksPage, new Set(orderedLanes.map((lane) => lane.handler)), handlerList.handlers, listTasks);
  const lanes = [...orderedLanes, ...unorderedLanes.lanes].sort((a, b) => Number(b.halted) - Number(a.halted));
  return {
    eventId: Math.min(allTasksPage.eventId, object?.eventId ?? allTasksPage.eventId),
    lanes: await Promise.all(lanes.map((lane, index) => (index < MAX_EXPLAINED_LANES ? addWhyToLane(lane, signal) : lane))),
    missing: missing.tasks,
    tasks: groupTasksByEvent(allTasksPage.tasks),
    hasMore: object?.moreLanes === true || unorderedLanes.hasMore,
  };
}

/** Reads the unfinished tasks of the object that are in no lane, such as those of unordered handlers, as one group per
 * handler in the form of a lane. They are taken from the page of all tasks; if the object has more tasks than a page,
 * the running tasks and each unordered handler with a backlog are queried.
 * @param {TaskPage} allTasksPage @param {Set<string>} orderedHandlers @param {Handler[]} handlers @param {ListTasks} listTasks
 * @returns {Promise<{lanes: Lane[], hasMore: boolean}>} */
async function readTasksOutsideLanes(allTasksPage, orderedHandlers, handlers, listTasks) {
  const unorderedNames = new Set(handlers.filter(({ order }) => order === "none").map(({ name }) => name));
  const backloggedHandlers = handlers.filter(({ name, counts }) => unorderedNames.has(name) && counts.ready + counts.waiting + counts.scheduled > 0);
  const pages = allTasksPage.next === null ? [allTasksPage] : await Promise.all([
    listTasks({ status: "RUNNING" }), ...backloggedHandlers.slice(0, MAX_QUERIED_UNORDERED_HANDLERS).map(({ name }) => listTasks({ status: "SCHEDULED", handler: name })),
  ]);
  const openTasks = pages.flatMap(({ tasks }) => tasks).filter(({ status, handler }) => (status === "RUNNING" || status === "SCHEDULED") && !orderedHandlers.has(handler));
  const lanes = [...new Set(openTasks.map((task) => task.handler))].map((handler) => {
    const handlerTasks = openTasks.filter((task) => task.handler === handler);
    const head = handlerTasks.find((task) => task.status === "RUNNING") ?? handlerTasks[handlerTasks.length - 1];
    return { handler, ordered: !unorderedNames.has(handler), head, why: null, halted: false, waiting: handlerTasks.length - 1, more: false };
  });
  return { lanes, hasMore: backloggedHandlers.length > MAX_QUERIED_UNORDERED_HANDLERS || pages.some((page) => page.next !== null) };
}

/** Adds why the head of the lane waits. @param {Lane} lane @param {AbortSignal} signal
 * @returns {Promise<Lane>} */
async function addWhyToLane(lane, signal) {
  return lane.head.status === "RUNNING" ? lane : { ...lane, why: await readTaskWhy(lane.head.id, signal) };
}

/** Reads why a task waits; null if the task has expired.
 * @param {string} id @param {AbortSignal} signal
 * @returns {Promise<TaskWhy | null>} */
export function readTaskWhy(id, signal) {
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
  const byEvent = new Map();
  for (const task of tasks) {
    if (task.event_id === null) continue;
    byEvent.set(task.event_id, [...(byEvent.get(task.event_id) ?? []), task]);
  }
  return byEvent;
}
