// Redrives: running many failed tasks again. A redrive belongs to the node that received the request.

import { api, encodeSegment } from "./api.js";

/** @typedef {import("./api-types.js").Redrive} Redrive */
/** @typedef {import("./tasks.js").TaskFilter} TaskFilter */

/** The tasks of a redrive. `status` is FAILED, CANCELED or `error`.
 * @typedef {{handler?: string, collection?: string, tenant?: string, key?: string, start?: string, end?: string,
 *   status: string}} RedriveScope */

/** Converts a task filter. Null if a redrive cannot express it: a redrive cannot be limited to one event.
 * @param {TaskFilter} filter
 * @returns {RedriveScope | null} */
export function redriveScopeFromFilter({ status = "FAILED", handler, source, collection, tenant, key, event, start, end }) {
  if (event || !["FAILED", "CANCELED", "error"].includes(status)) return null;
  return { status, handler: handler ?? source, collection, tenant, key, start, end };
}

/** The request body. The API wants an explicit `all` when there is no condition.
 * @param {RedriveScope} scope @param {{dry_run?: boolean, rate?: string, canary?: number}} [options] */
export function buildRedriveBody(scope, options = {}) {
  const { status, ...rest } = scope;
  const conditions = Object.fromEntries(Object.entries(rest).filter(([, value]) => value));
  return { ...(Object.keys(conditions).length ? conditions : { all: true }), status, ...options };
}

/** @param {RedriveScope} scope @param {AbortSignal} [signal]
 * @returns {Promise<{matched: number, more: boolean, sample: string[]}>} */
export function countRedriveTasks(scope, signal) {
  return api.post("/api/v1/tasks/redrive", buildRedriveBody(scope, { dry_run: true }), { signal });
}

/** @param {RedriveScope} scope @param {{rate?: string, canary?: number}} options
 * @returns {Promise<Redrive>} */
export function startRedrive(scope, options) {
  return api.post("/api/v1/tasks/redrive", buildRedriveBody(scope, options));
}

/** @param {string} id */
export function stopRedrive(id) {
  return api.delete(`/api/v1/redrives/${encodeSegment(id)}`);
}

/** Describes a scope: `failed tasks of flaky, tenant shop`.
 * @param {{handler?: string | null, collection?: string | null, tenant?: string | null, key?: string | null,
 *   status: string, start?: string | null, end?: string | null}} scope */
export function describeRedriveScope({ handler, collection, tenant, key, status, start, end }) {
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
