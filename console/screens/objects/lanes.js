// The lanes of an object: for each handler that has something to do for it, who is first, and why the others wait.

import { api, segment } from "../../data/api.js";

/** @typedef {import("../../data/bodies.js").Task} Task */
/** @typedef {import("../../data/bodies.js").TaskPage} TaskPage */
/** @typedef {import("../../data/bodies.js").Why} Why */
/** @typedef {import("../../data/bodies.js").ObjectDetail} ObjectDetail */
/** @typedef {import("../../data/bodies.js").Handler & {order: string | null, on_error: string | null}} Handler */

/** `ordered`: its tasks run one after the other, so that a head holds those behind it. `halted`: the head failed for
 * good and holds the lane until somebody decides. `more`: more wait than were counted. `why` is of the head.
 * @typedef {{handler: string, ordered: boolean, head: Task, why: Why | null, halted: boolean, waiting: number,
 *   more: boolean}} Lane */

/** `more`: there may be others.
 * @typedef {{eventId: number, lanes: Lane[], missing: Task[], tasks: Map<number, Task[]>, more: boolean}} Lanes */

/** @typedef {(narrow?: {status?: string, handler?: string}) => Promise<TaskPage>} List */

const PAGE = 1000;
/** Handlers without order that are asked about where an object has very many tasks, and heads that are asked why they wait. */
const MOST_LOOSE = 20;
const MOST_ASKED = 40;

/** @param {string} key @param {string} tenant @param {AbortSignal} signal
 * @returns {Promise<Lanes>} */
export async function readLanes(key, tenant, signal) {
  /** @type {List} */
  const list = (narrow) => api.get("/api/v1/tasks", { query: { key, tenant, ...narrow, limit: PAGE }, signal });
  // Its events are followed elsewhere: one is as few as one can ask for.
  const [object, all, missing, known] = await Promise.all([
    /** @type {Promise<ObjectDetail | null>} */ (api.get(`/api/v1/objects/${segment(key)}`, { query: { tenant, limit: 1 }, signal }).catch(gone)),
    list(), list({ status: "missing" }),
    /** @type {Promise<{handlers: Handler[]}>} */ (api.get("/api/v1/handlers", { signal })),
  ]);
  const ordered = (object?.lanes ?? []).map((lane) => ({ ...lane, ordered: true, why: null }));
  const loose = await readLoose(all, new Set(ordered.map((lane) => lane.handler)), known.handlers, list);
  const lanes = [...ordered, ...loose.lanes].sort((a, b) => Number(b.halted) - Number(a.halted));
  return {
    eventId: Math.min(all.eventId, object?.eventId ?? all.eventId),
    lanes: await Promise.all(lanes.map((lane, index) => (index < MOST_ASKED ? explained(lane, signal) : lane))),
    missing: missing.tasks,
    tasks: byEvent(all.tasks),
    more: object?.moreLanes === true || loose.more,
  };
}

/** What stands in no lane, because its handler keeps no order. It is among all tasks of the object; where these are too
 * many for a page, each such handler is asked about.
 * @param {TaskPage} all @param {Set<string>} laned @param {Handler[]} handlers @param {List} list
 * @returns {Promise<{lanes: Lane[], more: boolean}>} */
async function readLoose(all, laned, handlers, list) {
  const unordered = new Set(handlers.filter(({ order }) => order === "none").map(({ name }) => name));
  const busy = handlers.filter(({ name, counts }) => unordered.has(name) && counts.ready + counts.waiting + counts.scheduled > 0);
  const pages = all.next === null ? [all] : await Promise.all([
    list({ status: "RUNNING" }), ...busy.slice(0, MOST_LOOSE).map(({ name }) => list({ status: "SCHEDULED", handler: name })),
  ]);
  const found = pages.flatMap(({ tasks }) => tasks).filter(({ status, handler }) => (status === "RUNNING" || status === "SCHEDULED") && !laned.has(handler));
  const lanes = [...new Set(found.map((task) => task.handler))].map((handler) => {
    const own = found.filter((task) => task.handler === handler);
    const head = own.find((task) => task.status === "RUNNING") ?? own[own.length - 1];
    return { handler, ordered: !unordered.has(handler), head, why: null, halted: false, waiting: own.length - 1, more: false };
  });
  return { lanes, more: busy.length > MOST_LOOSE || pages.some((page) => page.next !== null) };
}

/** The same lane with why its head waits. @param {Lane} lane @param {AbortSignal} signal
 * @returns {Promise<Lane>} */
async function explained(lane, signal) {
  return lane.head.status === "RUNNING" ? lane : { ...lane, why: await whyOf(lane.head.id, signal) };
}

/** Null if it was forgotten meanwhile.
 * @param {string} id @param {AbortSignal} signal
 * @returns {Promise<Why | null>} */
export function whyOf(id, signal) {
  return api.get(`/api/v1/tasks/${segment(id)}/why`, { signal }).catch(gone);
}

/** @param {{status?: number}} error */
function gone(error) {
  if (error.status === 404) return null;
  throw error;
}

/** @param {Task[]} tasks */
function byEvent(tasks) {
  /** @type {Map<number, Task[]>} */
  const found = new Map();
  for (const task of tasks) {
    if (task.event_id === null) continue;
    found.set(task.event_id, [...(found.get(task.event_id) ?? []), task]);
  }
  return found;
}
