// How an order stands, in a word.

import { now } from "../../data/time.js";
import { Badge } from "../../parts/badge.js";
import { html } from "../../parts/ui.js";

/** @typedef {import("../../data/bodies.js").Order} Order */
/** @typedef {import("../../parts/badge.js").Tone} Tone */

/** The words, for those who look for one. */
export const STATES = ["Running", "Waiting", "Planned", "Setback", "Held", "Suspended", "Failed", "Stranded"];

/** @param {Order} order
 * @returns {{tone: Tone, word: string, why: string}} */
export function stateOf({ task, suspended, failed, stranded, held, setback_until, planned_at, started_at }) {
  const running = task?.status === "RUNNING";
  if (running) return { tone: "busy", word: "Running", why: suspended ? "It is suspended, and stays here when this step has ended" : "" };
  if (suspended && failed) return { tone: "bad", word: "Failed", why: failed.error };
  if (suspended) return { tone: "warn", word: "Suspended", why: "It begins no step until somebody resumes it" };
  if (stranded) return { tone: "bad", word: "Stranded", why: "Its chain has no such node any more: move it, or bring the node back" };
  if (setback_until) return { tone: "warn", word: "Setback", why: "Its step failed and is tried again later" };
  if (held) return { tone: "warn", word: "Held", why: held };
  if (!started_at && Date.parse(planned_at) > now.value) return { tone: "idle", word: "Planned", why: "Its time is to come" };
  return { tone: "idle", word: "Waiting", why: "Its step is about to begin" };
}

/** @param {{order: Order}} props */
export function OrderState({ order }) {
  const { tone, word, why } = stateOf(order);
  return html`<${Badge} tone=${tone} title=${why}>${word}<//>`;
}
