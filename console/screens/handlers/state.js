// How a handler stands, in a word, and what its numbers are for one tenant.

import { boundTenant } from "../../data/session.js";
import { html } from "../../parts/ui.js";
import { Badge } from "../../parts/badge.js";

/** @typedef {import("../../data/api-types.js").Handler} Handler */
/** @typedef {import("../../data/api-types.js").QueueCounts} QueueCounts */
/** @typedef {import("../../data/api-types.js").Rule} Rule */
/** @typedef {import("../../parts/badge.js").Tone} Tone */

/** What lists can be narrowed to. @type {[string, string][]} */
export const STATE_CHOICES = [["held", "Paused or blocked"], ["halted", "Halted"], ["missing", "With missing tasks"], ["busy", "Running"], ["waiting", "With a backlog"]];

/** Whether a rule holds all that one can see of a handler. @param {Handler} handler @param {Rule} rule */
function appliesToAll({ source }, { space, tenant }) {
  return space === "handler" && (tenant === null || tenant === boundTenant.value || tenant === source?.tenant);
}

/** @param {Handler} handler
 * @returns {{tone: Tone, word: string, why: string}} */
export function describeState(handler) {
  const { counts, rules, defined } = handler;
  const rule = rules.find((rule) => rule.kind === "block" && appliesToAll(handler, rule)) ?? rules.find((rule) => appliesToAll(handler, rule)) ?? rules[0];
  if (rule) {
    const word = rule.kind === "block" ? "Blocked" : "Paused";
    return { tone: rule.kind === "block" ? "bad" : "warn", word: appliesToAll(handler, rule) ? word : `${word} in part`, why: rule.reason ?? "" };
  }
  if (counts.halted) return { tone: "bad", word: "Halted", why: `${counts.halted} failed tasks halt their lanes` };
  if (!defined) return { tone: "warn", word: "Removed", why: "It is no longer defined" };
  if (counts.missing) return { tone: "warn", word: "Missing", why: `${counts.missing} tasks were set aside while it was not defined` };
  if (counts.running) return { tone: "busy", word: "Running", why: "" };
  return { tone: "idle", word: "Idle", why: "" };
}

/** @param {{handler: Handler}} props */
export function HandlerStateBadge({ handler }) {
  const { tone, word, why } = describeState(handler);
  return html`<${Badge} tone=${tone} title=${why}>${word}<//>`;
}

/** @param {Handler} handler @param {string} state */
export function matchesState({ counts, rules, defined }, state) {
  if (state === "held") return rules.length > 0;
  if (state === "halted") return counts.halted > 0;
  if (state === "missing") return counts.missing > 0 || !defined;
  if (state === "busy") return counts.running > 0;
  return state !== "waiting" || counts.ready + counts.waiting + counts.scheduled > 0;
}

const COUNT_NAMES = /** @type {const} */ (["ready", "waiting", "scheduled", "running", "halted", "missing"]);

/** A handler as one tenant has it: its queues alone, and what they add up to.
 * @param {Handler} handler @param {string | undefined} tenant
 * @returns {Handler} */
export function limitToTenant(handler, tenant) {
  if (!tenant) return handler;
  const queues = handler.queues.filter((queue) => queue.tenant === tenant);
  const counts = /** @type {QueueCounts} */ (Object.fromEntries(COUNT_NAMES.map((name) => [name, queues.reduce((sum, queue) => sum + queue[name], 0)])));
  const ages = queues.map((queue) => queue.oldest_runnable_seconds).filter((age) => age !== null);
  const rules = handler.rules.filter((rule) => rule.tenant === null || rule.tenant === tenant);
  return { ...handler, queues, counts, rules, oldest_runnable_seconds: ages.length ? Math.max(...ages) : null };
}

/** All tenants that have tasks somewhere. @param {Handler[]} handlers */
export function listTenants(handlers) {
  return [...new Set(handlers.flatMap((handler) => handler.queues.map((queue) => queue.tenant)))].sort();
}
