// How an order stands, in a word.

import { now } from "../../data/time.js";
import { Badge } from "../../parts/badge.js";
import { html } from "../../parts/ui.js";

/** @typedef {import("../../data/api-types.js").Order} Order */
/** @typedef {import("../../parts/badge.js").Tone} Tone */

/** The words, for those who look for one. */
export const ORDER_STATES = ["Running", "Waiting", "Planned", "Retrying", "On hold", "Suspended", "Failed", "Orphaned"];

/** @param {Order} order
 * @returns {{tone: Tone, word: string, why: string}} */
export function describeOrderState({ task, suspended, failed, stranded, held, setback_until, planned_at, started_at }) {
  const running = task?.status === "RUNNING";
  if (running) return { tone: "busy", word: "Running", why: suspended ? "It is suspended, and stays at this node after the step" : "" };
  if (suspended && failed) return { tone: "bad", word: "Failed", why: failed.error };
  if (suspended) return { tone: "warn", word: "Suspended", why: "It starts no step until it is resumed" };
  if (stranded) return { tone: "bad", word: "Orphaned", why: "The chain no longer has this node: move the order, or define the node again" };
  if (setback_until) return { tone: "warn", word: "Retrying", why: "Its step failed and will be retried" };
  if (held) return { tone: "warn", word: "On hold", why: held };
  if (!started_at && Date.parse(planned_at) > now.value) return { tone: "idle", word: "Planned", why: "It starts at its planned time" };
  return { tone: "idle", word: "Waiting", why: "Its step is about to start" };
}

/** @param {{order: Order}} props */
export function OrderStateBadge({ order }) {
  const { tone, word, why } = describeOrderState(order);
  return html`<${Badge} tone=${tone} title=${why}>${word}<//>`;
}
