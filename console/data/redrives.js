// Redrives: running many failed tasks again. They belong to the node that was asked.

import { api, segment } from "./api.js";

/** @typedef {import("./bodies.js").Redrive} Redrive */
/** @typedef {import("./tasks.js").Wanted} Wanted */

/** Which tasks: what a redrive can be narrowed by. `status` is FAILED, CANCELED or `error`.
 * @typedef {{handler?: string, collection?: string, tenant?: string, key?: string, start?: string, end?: string,
 *   status: string}} Scope */

/** What of a filter for tasks a redrive understands. Null if it cannot mean the same: it knows no single event.
 * @param {Wanted} wanted
 * @returns {Scope | null} */
export function scopeOf({ status = "FAILED", handler, source, collection, tenant, key, event, start, end }) {
  if (event || !["FAILED", "CANCELED", "error"].includes(status)) return null;
  return { status, handler: handler ?? source, collection, tenant, key, start, end };
}

/** The body of a redrive. Everything has to be said in so many words.
 * @param {Scope} scope @param {{dry_run?: boolean, rate?: string, canary?: number}} [how] */
export function bodyOf(scope, how = {}) {
  const { status, ...rest } = scope;
  const narrowing = Object.fromEntries(Object.entries(rest).filter(([, value]) => value));
  return { ...(Object.keys(narrowing).length ? narrowing : { all: true }), status, ...how };
}

/** @param {Scope} scope @param {AbortSignal} [signal]
 * @returns {Promise<{matched: number, more: boolean, sample: string[]}>} */
export function countRedrive(scope, signal) {
  return api.post("/api/v1/tasks/redrive", bodyOf(scope, { dry_run: true }), { signal });
}

/** @param {Scope} scope @param {{rate?: string, canary?: number}} how
 * @returns {Promise<Redrive>} */
export function beginRedrive(scope, how) {
  return api.post("/api/v1/tasks/redrive", bodyOf(scope, how));
}

/** @param {string} id */
export function stopRedrive(id) {
  return api.delete(`/api/v1/redrives/${segment(id)}`);
}

/** In words: `failed tasks of flaky, of the tenant shop`.
 * @param {{handler?: string | null, collection?: string | null, tenant?: string | null, key?: string | null,
 *   status: string, start?: string | null, end?: string | null}} scope */
export function scopeWords({ handler, collection, tenant, key, status, start, end }) {
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
