// Pauses and blocks: what they hold, who may lift them, and setting and lifting them.

import { api, encodePath, encodeSegment } from "./api.js";
import { boundTenant, hasRole } from "./session.js";

/** @typedef {import("./api-types.js").Rule} Rule */
/** What can be held: a handler or a source, `source/collection`, a schedule, a chain by its path.
 * @typedef {Pick<Rule, "space" | "name">} RuleTarget */

/** The call that sets (PUT) and lifts (DELETE) a rule.
 * @param {RuleTarget} place @param {Rule["kind"]} kind */
export function ruleUrl({ space, name }, kind) {
  if (space === "chain") return `/api/v1/chains/${encodePath(name)}/${kind}`;
  return `/api/v1/${space === "schedule" ? "schedules" : "handlers"}/${encodeSegment(name)}/${kind}`;
}

/** What is needed to set or lift a rule. @param {Rule["kind"]} kind
 * @returns {import("./session.js").Role} */
export function requiredRole(kind) {
  return kind === "block" ? "admin" : "operator";
}

/** A token that is bound to a tenant lifts what holds that tenant alone; schedules have no tenants. @param {Rule} rule */
export function mayRemoveRule(rule) {
  return hasRole(requiredRole(rule.kind)) && (boundTenant.value === null || rule.space === "schedule" || rule.tenant === boundTenant.value);
}

/** @param {Rule["kind"]} kind @param {RuleTarget} place @param {{tenant?: string, reason?: string}} said */
export function setRule(kind, place, { tenant, reason }) {
  return api.put(ruleUrl(place, kind), { tenant: tenant?.trim() || undefined, reason: reason?.trim() || undefined });
}

/** @param {Rule} rule */
export function removeRule(rule) {
  return api.delete(ruleUrl(rule, rule.kind), { body: rule.tenant === null ? undefined : { tenant: rule.tenant } });
}
