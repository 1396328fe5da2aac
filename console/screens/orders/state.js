// The state of an order.

import { now } from "../../data/time.js";
import { Badge } from "../../parts/badge.js";
import { html } from "../../parts/ui.js";

/** @typedef {import("../../data/api-types.js").Order} Order */
/** @typedef {import("../../parts/badge.js").Tone} Tone */

/** State labels, for the filter. */
export const ORDER_STATES = ["Running", "Waiting", "Planned", "Retrying", "On hold", "Suspended", "Failed", "Orphaned"];

/** @param {Order} order
 * @returns {{tone: Tone, label: string, why: string}} */
export function describeOrderState({ task, suspended, failed, stranded, held, setback_until, planned_at, started_at }) {
  const running = task?.status === "RUNNING";
  if (running) return { tone: "busy", label: "Running", why: suspended ? "It is suspended, and stays at this node after the step" : "" };
  if (suspended && failed) return { tone: "bad", label: "Failed", why: failed.error };
  if (suspended) return { tone: "warn", label: "Suspended", why: "Until it is resumed" };
  if (stranded) return { tone: "bad", label: "Orphaned", why: "The chain no longer has this node: move the order, or define the node again" };
  if (setback_until) return { tone: "warn", label: "Retrying", why: "Its step failed" };
  if (held) return { tone: "warn", label: "On hold", why: held };
  if (!started_at && Date.parse(planned_at) > now.value) return { tone: "idle", label: "Planned", why: "It starts at its planned time" };
  return { tone: "idle", label: "Waiting", why: "Its step is about to start" };
}

/** @param {{order: Order}} props */
export function OrderStateBadge({ order }) {
  const { tone, label, why } = describeOrderState(order);
  return html`<${Badge} tone=${tone} title=${why}>${label}<//>`;
}
