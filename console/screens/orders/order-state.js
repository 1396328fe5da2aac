// The state of an order.

import { now } from "../../data/time.js";
import { Badge } from "../../parts/badge.js";
import { html } from "../../parts/ui.js";

/** @typedef {import("../../data/api-types.js").Order} Order */
/** @typedef {import("../../parts/badge.js").Tone} Tone */

/** State labels, for the filter. */
export const ORDER_STATE_LABELS = ["Running", "Waiting", "Planned", "Retrying", "On hold", "Suspended", "Failed", "Stranded"];

/** @param {Order} order
 * @returns {{tone: Tone, label: string, reason: string}} */
export function describeOrderState({ task, suspended, failed, stranded, blocked_by, setback_until, planned_at, started_at }) {
  const running = task?.status === "RUNNING";
  if (running) return { tone: "busy", label: "Running", reason: suspended ? "It is suspended, and stays at this node after the step" : "" };
  if (suspended && failed) return { tone: "bad", label: "Failed", reason: failed.error };
  if (suspended) return { tone: "warn", label: "Suspended", reason: "Until it is resumed" };
  if (stranded) return { tone: "bad", label: "Stranded", reason: "The chain no longer has this node: move the order, or define the node again" };
  if (setback_until) return { tone: "warn", label: "Retrying", reason: "Its step failed" };
  if (blocked_by) return { tone: "warn", label: "On hold", reason: blocked_by };
  if (!started_at && Date.parse(planned_at) > now.value) return { tone: "idle", label: "Planned", reason: "It starts at its planned time" };
  return { tone: "idle", label: "Waiting", reason: "Its step is about to start" };
}

/** @param {{order: Order}} props */
export function OrderStateBadge({ order }) {
  const { tone, label, reason } = describeOrderState(order);
  return html`<${Badge} tone=${tone} title=${reason}>${label}<//>`;
}
