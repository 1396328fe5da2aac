// Groups failures by handler and error.

import { toMillis } from "../../data/time.js";
import { isOrderStepTask } from "../../data/tasks.js";

/** @typedef {import("../../data/api-types.js").Task} Task */
/** @typedef {import("../../data/api-types.js").TaskChange} TaskChange */

/** A task that failed. `at` is the time in milliseconds; failures with the same `groupKey` are one group.
 * @typedef {{id: string, handler: string, tenant: string, key: string | null, event_id: number | null, state: string,
 *   error: string, at: number, groupKey: string}} Failure */

/** `failed` tasks can be run again, `missing` ones adopted, and for a `step` its order can be resumed.
 * @typedef {"failed" | "missing" | "step"} FailureKind */

/** `failures` are sorted newest first.
 * @typedef {{id: string, handler: string, kind: FailureKind, error: string, failures: Failure[], newest: number, oldest: number,
 *   objects: number, tenants: string[]}} FailureGroup */

/** Characters of an error that are compared. */
const MAX_COMPARED_CHARS = 300;

/** @param {Task} task
 * @returns {Failure} */
export function failureFromTask({ id, handler, tenant, key, event_id, state, error, finished_at, created_at }) {
  return addGroupKey({ id, handler, tenant, key, event_id, state, error: error ?? "", at: toMillis(finished_at) ?? toMillis(created_at) ?? 0 });
}

/** @param {TaskChange} change
 * @returns {Failure} */
export function failureFromChange({ id, handler, tenant, key, event_id, state, error, time }) {
  return addGroupKey({ id, handler, tenant, key, event_id, state, error: error ?? "", at: toMillis(time) ?? 0 });
}

/** @param {Omit<Failure, "groupKey">} failure */
function addGroupKey(failure) {
  const kind = failureKind(failure);
  return { ...failure, groupKey: [failure.handler, kind, kind === "missing" ? "" : normalizeError(failure)].join("\u0000") };
}

/** @param {{state: string, key: string | null, event_id: number | null}} failure
 * @returns {FailureKind} */
function failureKind(failure) {
  return failure.state === "missing" ? "missing" : isOrderStepTask(failure) ? "step" : "failed";
}

/** Replaces ids, long numbers, fractions and the object key, so that similar errors are equal.
 * @param {{error: string, key: string | null}} failure */
function normalizeError({ error, key }) {
  const withoutKey = key && key.length > 2 ? error.replaceAll(key, "‹object›") : error;
  return withoutKey.slice(0, MAX_COMPARED_CHARS)
    .replace(/[0-9a-f]{8}-[0-9a-f-]{4,}/gi, "‹id›")
    .replace(/\b[0-9a-f]{10,}\b/gi, "‹id›")
    .replace(/\d+\.\d+|\d{4,}/g, "‹n›");
}

/** Groups failures, largest group first.
 * @param {Iterable<Failure>} failures
 * @returns {FailureGroup[]} */
export function groupFailures(failures) {
  /** @type {Map<string, Failure[]>} */
  const listsByKey = new Map();
  for (const failure of failures) {
    const list = listsByKey.get(failure.groupKey);
    if (list) list.push(failure);
    else listsByKey.set(failure.groupKey, [failure]);
  }
  return [...listsByKey].map(([groupKey, list]) => buildFailureGroup(groupKey, list))
    .sort((a, b) => b.failures.length - a.failures.length || b.newest - a.newest);
}

/** @param {string} groupKey @param {Failure[]} list
 * @returns {FailureGroup} */
function buildFailureGroup(groupKey, list) {
  const failures = list.sort((a, b) => b.at - a.at);
  const [newestFailure] = failures;
  return {
    id: hashText(groupKey), handler: newestFailure.handler, kind: failureKind(newestFailure), error: newestFailure.error, failures,
    newest: newestFailure.at, oldest: failures[failures.length - 1].at,
    objects: new Set(failures.map(({ tenant, key }) => `${tenant} ${key}`)).size,
    tenants: [...new Set(failures.map(({ tenant }) => tenant))],
  };
}

/** Counts failures in equal time intervals.
 * @param {FailureGroup} group @param {number} from @param {number} to @param {number} [intervals] */
export function countFailuresPerInterval({ failures }, from, to, intervals = 24) {
  const counts = /** @type {number[]} */ (Array(intervals).fill(0));
  const step = Math.max(1, (to - from) / intervals);
  for (const { at } of failures) counts[Math.min(intervals - 1, Math.max(0, Math.floor((at - from) / step)))] += 1;
  return counts;
}

/** A short hash for an address (FNV-1a). @param {string} text */
function hashText(text) {
  let hash = 0x811c9dc5;
  for (const letter of text) hash = Math.imul(hash ^ /** @type {number} */ (letter.codePointAt(0)), 0x01000193) >>> 0;
  return hash.toString(16).padStart(8, "0");
}
