// What the stream shows: events, and between them what becomes of tasks, if that is wanted.

import { isEngine, keyOf, taskOf } from "../../data/filter.js";
import { stringify } from "../../parts/json.js";

/** @typedef {import("../../data/filter.js").Event} Event */
/** @typedef {import("../../data/filter.js").Change} Change */

/** `gap` stands where something is missing, and says why. Of an event only what is shown is kept: thousands of rows are,
 * and each may have come with a megabyte.
 * @typedef {{id: string, kind: "event" | "task" | "gap", at: number | string, type: string, key: string | null,
 *   tenant: string, text: string, eventId?: number, task?: string | null, change?: Change}} Row */

/** How much of a payload a row shows. */
const MOST_TEXT = 240;

/** @param {Event} event
 * @returns {Row} */
export function eventRow(event) {
  return {
    id: `e${event.eventId}`, kind: "event", at: event.eventId, type: event.TYPE, key: keyOf(event),
    tenant: event.tenant ?? "", text: summary(event), eventId: event.eventId, task: taskOf(event),
  };
}

let changes = 0;

/** @param {Change} change
 * @returns {Row} */
export function taskRow(change) {
  changes += 1;
  return {
    id: `t${changes}`, kind: "task", at: change.time, type: change.handler, key: change.key,
    tenant: change.tenant, text: change.error ?? "", change,
  };
}

/** @param {string} text
 * @returns {Row} */
export function gapRow(text) {
  changes += 1;
  return { id: `g${changes}`, kind: "gap", at: Date.now(), type: "", key: null, tenant: "", text };
}

/** One line of what an event carries. @param {Event} event */
function summary(event) {
  if (!isEngine(event)) return event.value === null || event.value === undefined ? "" : cut(stringify(event.value).replace(/\s*\n\s*/g, " "));
  const { eventId: _, TYPE: __, key: ___, ...fields } = event;
  return cut(Object.entries(fields).map(([name, value]) => `${name} ${typeof value === "string" ? value : JSON.stringify(value)}`).join("  "));
}

/** @param {string} text */
function cut(text) {
  // A copy: a part of a text would keep all of it in memory.
  return text.length > MOST_TEXT ? structuredClone(`${text.slice(0, MOST_TEXT)}…`) : text;
}
