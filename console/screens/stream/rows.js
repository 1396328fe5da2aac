// Rows of the stream: events, task changes, and gaps.

import { describeEngineEvent, isEngineEvent, taskIdOfTaskEvent } from "../../data/engine-events.js";
import { eventKeyText } from "../../data/stream-filter.js";
import { stringifyExact } from "../../parts/json.js";

/** @typedef {import("../../data/api-types.js").JournalEvent} JournalEvent */
/** @typedef {import("../../data/api-types.js").TaskChange} TaskChange */

/** A `gap` row marks missing events. A row keeps only the visible part of an event: there are thousands of rows, and
 * a value may have a megabyte.
 * @typedef {{id: string, kind: "event" | "task" | "gap", at: number | string, type: string, key: string | null,
 *   tenant: string, text: string, eventId?: number, taskId?: string | null, change?: TaskChange}} StreamRow */

/** Characters of a value that a row shows. */
const MAX_VALUE_CHARS = 240;

/** @param {JournalEvent} event
 * @returns {StreamRow} */
export function newEventRow(event) {
  return {
    id: `e${event.eventId}`, kind: "event", at: event.eventId, type: event.TYPE, key: eventKeyText(event),
    tenant: event.tenant ?? "", text: eventSummary(event), eventId: event.eventId, taskId: taskIdOfTaskEvent(event),
  };
}

let lastRowNumber = 0;

/** @param {TaskChange} change
 * @returns {StreamRow} */
export function newTaskChangeRow(change) {
  lastRowNumber += 1;
  return {
    id: `t${lastRowNumber}`, kind: "task", at: change.time, type: change.handler, key: change.key,
    tenant: change.tenant, text: change.error ?? "", change,
  };
}

/** @param {string} text
 * @returns {StreamRow} */
export function newGapRow(text) {
  lastRowNumber += 1;
  return { id: `g${lastRowNumber}`, kind: "gap", at: Date.now(), type: "", key: null, tenant: "", text };
}

/** The event as one line. @param {JournalEvent} event */
function eventSummary(event) {
  if (isEngineEvent(event)) return truncate(describeEngineEvent(event));
  return event.value === null || event.value === undefined ? "" : truncate(stringifyExact(event.value).replace(/\s*\n\s*/g, " "));
}

/** @param {string} text */
function truncate(text) {
  // A copy: a slice would keep the whole text in memory.
  return text.length > MAX_VALUE_CHARS ? structuredClone(`${text.slice(0, MAX_VALUE_CHARS)}…`) : text;
}
