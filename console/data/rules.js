// Pauses and blocks: what they hold, who may lift them, and setting and lifting them.

import { api, below, segment } from "./api.js";
import { bound, may } from "./session.js";

/** @typedef {import("./bodies.js").Rule} Rule */
/** What can be held: a handler or a source, `source/collection`, a schedule, a chain by its path.
 * @typedef {Pick<Rule, "space" | "name">} Place */

/** The call that sets (PUT) and lifts (DELETE) a rule.
 * @param {Place} place @param {Rule["kind"]} kind */
export function addressOf({ space, name }, kind) {
  if (space === "chain") return `/api/v1/chains/${below(name)}/${kind}`;
  return `/api/v1/${space === "schedule" ? "schedules" : "handlers"}/${segment(name)}/${kind}`;
}

/** What is needed to set or lift a rule. @param {Rule["kind"]} kind
 * @returns {import("./session.js").Role} */
export function roleOf(kind) {
  return kind === "block" ? "admin" : "operator";
}

/** A token that is bound to a tenant lifts what holds that tenant alone; schedules have no tenants. @param {Rule} rule */
export function mayLift(rule) {
  return may(roleOf(rule.kind)) && (bound.value === null || rule.space === "schedule" || rule.tenant === bound.value);
}

/** @param {Rule["kind"]} kind @param {Place} place @param {{tenant?: string, reason?: string}} said */
export function hold(kind, place, { tenant, reason }) {
  return api.put(addressOf(place, kind), { tenant: tenant?.trim() || undefined, reason: reason?.trim() || undefined });
}

/** @param {Rule} rule */
export function lift(rule) {
  return api.delete(addressOf(rule, rule.kind), { body: rule.tenant === null ? undefined : { tenant: rule.tenant } });
}
