// Pauses and blocks: setting and removing them, and the roles that this needs.

import { api, encodeOrderOrChainPath, encodeSegment } from "./api.js";
import { boundTenant, hasRole } from "./session.js";

/** @typedef {import("./api-types.js").Rule} Rule */
/** An object that can be paused or blocked: a handler or source, `source/collection`, a schedule, a chain by its path.
 * @typedef {Pick<Rule, "space" | "name">} RuleTarget */

/** The URL that sets (PUT) or removes (DELETE) a rule.
 * @param {RuleTarget} target @param {Rule["kind"]} kind */
export function ruleUrl({ space, name }, kind) {
  if (space === "chain") return `/api/v1/chains/${encodeOrderOrChainPath(name)}/${kind}`;
  return `/api/v1/${space === "schedule" ? "schedules" : "handlers"}/${encodeSegment(name)}/${kind}`;
}

/** The role that is needed to set or remove a rule. @param {Rule["kind"]} kind
 * @returns {import("./session.js").Role} */
export function requiredRoleForRule(kind) {
  return kind === "block" ? "admin" : "operator";
}

/** A token that is bound to a tenant may remove only rules of that tenant; schedules have no tenants. @param {Rule}
 * rule */
export function mayRemoveRule(rule) {
  return hasRole(requiredRoleForRule(rule.kind)) && (boundTenant.value === null || rule.space === "schedule" || rule.tenant === boundTenant.value);
}

/** @param {Rule["kind"]} kind @param {RuleTarget} target @param {{tenant?: string, reason?: string}} options */
export function setRule(kind, target, { tenant, reason }) {
  return api.put(ruleUrl(target, kind), { tenant: tenant?.trim() || undefined, reason: reason?.trim() || undefined });
}

/** @param {Rule} rule */
export function removeRule(rule) {
  return api.delete(ruleUrl(rule, rule.kind), { body: rule.tenant === null ? undefined : { tenant: rule.tenant } });
}
