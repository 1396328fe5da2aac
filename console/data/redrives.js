// Redrives: running many failed tasks again. They belong to the node that was asked.

import { api, encodeSegment } from "./api.js";

/** @typedef {import("./api-types.js").Redrive} Redrive */
/** @typedef {import("./tasks.js").TaskFilter} TaskFilter */

/** Which tasks: what a redrive can be narrowed by. `status` is FAILED, CANCELED or `error`.
 * @typedef {{handler?: string, collection?: string, tenant?: string, key?: string, start?: string, end?: string,
 *   status: string}} RedriveScope */

/** What of a filter for tasks a redrive understands. Null if it cannot mean the same: it knows no single event.
 * @param {TaskFilter} wanted
 * @returns {RedriveScope | null} */
export function redriveScope({ status = "FAILED", handler, source, collection, tenant, key, event, start, end }) {
  if (event || !["FAILED", "CANCELED", "error"].includes(status)) return null;
  return { status, handler: handler ?? source, collection, tenant, key, start, end };
}

/** The body of a redrive. Everything has to be said in so many words.
 * @param {RedriveScope} scope @param {{dry_run?: boolean, rate?: string, canary?: number}} [how] */
export function redriveBody(scope, how = {}) {
  const { status, ...rest } = scope;
  const narrowing = Object.fromEntries(Object.entries(rest).filter(([, value]) => value));
  return { ...(Object.keys(narrowing).length ? narrowing : { all: true }), status, ...how };
}

/** @param {RedriveScope} scope @param {AbortSignal} [signal]
 * @returns {Promise<{matched: number, more: boolean, sample: string[]}>} */
export function countRedrive(scope, signal) {
  return api.post("/api/v1/tasks/redrive", redriveBody(scope, { dry_run: true }), { signal });
}

/** @param {RedriveScope} scope @param {{rate?: string, canary?: number}} how
 * @returns {Promise<Redrive>} */
export function startRedrive(scope, how) {
  return api.post("/api/v1/tasks/redrive", redriveBody(scope, how));
}

/** @param {string} id */
export function stopRedrive(id) {
  return api.delete(`/api/v1/redrives/${encodeSegment(id)}`);
}

/** In words: `failed tasks of flaky, of the tenant shop`.
 * @param {{handler?: string | null, collection?: string | null, tenant?: string | null, key?: string | null,
 *   status: string, start?: string | null, end?: string | null}} scope */
export function describeScope({ handler, collection, tenant, key, status, start, end }) {
  const kind = { CANCELED: "cancelled tasks", error: "failed and cancelled tasks" }[status] ?? "failed tasks";
  return [
    kind + (handler ? ` of ${handler}` : ""),
    collection && `type ${collection}`,
    tenant && `tenant ${tenant}`,
    key && `object ${key}`,
    start && `created since ${start}`,
    end && `created before ${end}`,
  ].filter(Boolean).join(", ");
}
