// The state of a handler, and its counts for one tenant.

import { boundTenant } from "../../data/session.js";
import { html } from "../../parts/ui.js";
import { Badge } from "../../parts/badge.js";

/** @typedef {import("../../data/api-types.js").Handler} Handler */
/** @typedef {import("../../data/api-types.js").QueueCounts} QueueCounts */
/** @typedef {import("../../data/api-types.js").Rule} Rule */
/** @typedef {import("../../parts/badge.js").Tone} Tone */

/** Choices of the state filter. @type {[string, string][]} */
export const HANDLER_STATE_CHOICES = [["held", "Paused or blocked"], ["halted", "Halted"], ["missing", "With missing tasks"], ["busy", "Running"], ["waiting", "With a backlog"]];

/** Whether a rule applies to all tasks of the handler that the token can see. @param {Handler} handler @param {Rule}
 * rule */
function appliesToAllTasks({ source }, { space, tenant }) {
  return space === "handler" && (tenant === null || tenant === boundTenant.value || tenant === source?.tenant);
}

/** @param {Handler} handler
 * @returns {{tone: Tone, label: string, reason: string}} */
export function describeHandlerState(handler) {
  const { counts, rules, defined } = handler;
  const rule = rules.find((rule) => rule.kind === "block" && appliesToAllTasks(handler, rule)) ?? rules.find((rule) => appliesToAllTasks(handler, rule)) ?? rules[0];
  if (rule) {
    const label = rule.kind === "block" ? "Blocked" : "Paused";
    return { tone: rule.kind === "block" ? "bad" : "warn", label: appliesToAllTasks(handler, rule) ? label : `${label} in part`, reason: rule.reason ?? "" };
  }
  if (counts.halted) return { tone: "bad", label: "Halted", reason: `${counts.halted} failed tasks halt their lanes` };
  if (!defined) return { tone: "warn", label: "Removed", reason: "It is no longer defined" };
  if (counts.missing) return { tone: "warn", label: "Missing", reason: `${counts.missing} tasks were set aside while it was not defined` };
  if (counts.running) return { tone: "busy", label: "Running", reason: "" };
  const queuesWithOpenTasks = handler.queues.filter((queue) => queue.ready + queue.scheduled > 0);
  if (queuesWithOpenTasks.length > 0 && queuesWithOpenTasks.every((queue) => queue.held)) return { tone: "warn", label: "On hold", reason: "Its queues are paused, or their nodes are stopped" };
  return { tone: "idle", label: "Idle", reason: "" };
}

/** @param {{handler: Handler}} props */
export function HandlerStateBadge({ handler }) {
  const { tone, label, reason } = describeHandlerState(handler);
  return html`<${Badge} tone=${tone} title=${reason}>${label}<//>`;
}

/** @param {Handler} handler @param {string} state */
export function matchesHandlerState({ counts, rules, defined }, state) {
  if (state === "held") return rules.length > 0;
  if (state === "halted") return counts.halted > 0;
  if (state === "missing") return counts.missing > 0 || !defined;
  if (state === "busy") return counts.running > 0;
  return state !== "waiting" || counts.ready + counts.waiting + counts.scheduled > 0;
}

const TASK_COUNT_NAMES = /** @type {const} */ (["ready", "waiting", "scheduled", "running", "halted", "missing"]);

/** The handler with only the queues of one tenant and their sums.
 * @param {Handler} handler @param {string | undefined} tenant
 * @returns {Handler} */
export function limitHandlerToTenant(handler, tenant) {
  if (!tenant) return handler;
  const queuesOfTenant = handler.queues.filter((queue) => queue.tenant === tenant);
  const countsOfTenant = /** @type {QueueCounts} */ (Object.fromEntries(TASK_COUNT_NAMES.map((name) => [name, queuesOfTenant.reduce((sum, queue) => sum + queue[name], 0)])));
  const ages = queuesOfTenant.map((queue) => queue.oldest_runnable_seconds).filter((age) => age !== null);
  const rulesOfTenant = handler.rules.filter((rule) => rule.tenant === null || rule.tenant === tenant);
  return { ...handler, queues: queuesOfTenant, counts: countsOfTenant, rules: rulesOfTenant, oldest_runnable_seconds: ages.length ? Math.max(...ages) : null };
}

/** All tenants that have queues. @param {Handler[]} handlers */
export function listTenantsWithQueues(handlers) {
  return [...new Set(handlers.flatMap((handler) => handler.queues.map((queue) => queue.tenant)))].sort();
}
