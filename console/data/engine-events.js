// Engine events as sentences, in the words of `pointsman watch`.

import { isEngineEvent } from "./filter.js";

/** @typedef {import("./filter.js").JournalEvent} JournalEvent */

/** Names of configured things by the prefix of their key. @type {Record<string, string>} */
const KINDS = { Job: "handler", JobChain: "chain" };

/** @type {Record<string, string>} */
const FILE_CHANGES = { FileBasedAdded: "added", FileBasedRemoved: "removed", FileBasedReplaced: "replaced", FileBasedActivated: "activated" };

/** Replaces control characters, which could break or reorder a line. @param {unknown} text */
function clean(text) {
  return String(text).replace(/[\p{Cc}\p{Cf}]/gu, " ");
}

/** A template tag: the line, or null if one of its values is missing.
 * @param {TemplateStringsArray} parts @param {...unknown} values
 * @returns {string | null} */
function line(parts, ...values) {
  if (values.some((value) => value === undefined || value === null)) return null;
  return parts.map((part, index) => (index < values.length ? part + clean(values[index]) : part)).join("");
}

/** The chain and the id of an order, from its path.
 * @param {unknown} key
 * @returns {{chain?: string, id?: string}} */
function parseOrderKey(key) {
  const found = /^(?:Order:)?(.+),([^,]+)$/s.exec(typeof key === "string" ? key : "");
  return found ? { chain: found[1], id: found[2] } : {};
}

/** @param {JournalEvent} event */
function describeFileChange({ TYPE, key, nodeId }) {
  const [, prefix, name] = /^(\w+):(.*)$/s.exec(String(key)) ?? [];
  const { chain, id } = parseOrderKey(key);
  if (prefix === "Order" && TYPE === "FileBasedAdded") return line`order ${id} added to ${chain} at ${nodeId}`;
  if (prefix === "Order" && TYPE === "FileBasedRemoved") return line`order ${id} removed from ${chain}`;
  if (prefix === undefined) return null;
  const kind = KINDS[prefix] ?? prefix.toLowerCase();
  return line`${kind} ${prefix === "JobChain" ? name : name.replace(/^\//, "")} ${FILE_CHANGES[TYPE]}`;
}

/** @param {JournalEvent} event */
function describeStepEnd({ key, nodeTransition }) {
  const { id } = parseOrderKey(key);
  const { TYPE, returnCode } = /** @type {{TYPE?: string, returnCode?: number}} */ (nodeTransition ?? {});
  if (TYPE === "Success") return line`step of order ${id} succeeded`;
  if (TYPE === "Error") return line`step of order ${id} failed with return code ${returnCode}`;
  return TYPE === "Keep" ? line`step of order ${id} will run again` : null;
}

/** The handler of a TaskEvent. @param {JournalEvent} event */
function handlerOf({ key }) {
  const { jobPath } = /** @type {{jobPath?: string}} */ (key ?? {});
  return jobPath?.replace(/^\//, "");
}

/** @type {Record<string, (event: JournalEvent) => string | null>} */
const DESCRIPTIONS = {
  FileBasedAdded: describeFileChange,
  FileBasedRemoved: describeFileChange,
  FileBasedReplaced: describeFileChange,
  FileBasedActivated: describeFileChange,
  OrderStarted: ({ key, nodeId }) => line`order ${parseOrderKey(key).id} started at ${nodeId}`,
  OrderStepStarted: ({ key, nodeId }) => line`order ${parseOrderKey(key).id} runs step ${nodeId}`,
  OrderStepEnded: describeStepEnd,
  OrderSetBack: ({ key, nodeId }) => line`order ${parseOrderKey(key).id} is set back at ${nodeId} and will be retried`,
  OrderNodeChanged: ({ key, fromNodeId, nodeId }) => line`order ${parseOrderKey(key).id} moved from ${fromNodeId} to ${nodeId}`,
  OrderSuspended: ({ key }) => line`order ${parseOrderKey(key).id} suspended`,
  OrderResumed: ({ key }) => line`order ${parseOrderKey(key).id} resumed`,
  OrderFinished: ({ key, nodeId }) => line`order ${parseOrderKey(key).id} finished at ${nodeId}`,
  JobChainStateChanged: ({ key, state }) => line`chain ${key} is now ${state}`,
  JobChainNodeActionChanged: ({ key, nodeId, action }) => line`node ${nodeId} of chain ${key} set to ${action}`,
  TaskStarted: (event) => line`task of handler ${handlerOf(event)} started`,
  TaskEnded: (event) => line`task of handler ${handlerOf(event)} ended with return code ${event.returnCode}`,
  TaskClosed: (event) => line`task of handler ${handlerOf(event)} closed`,
  SchedulerStateChanged: ({ state }) => line`scheduler is now ${state}`,
  SchedulerClosed: () => "scheduler closed",
};

/** The fields of an event, for types that this console does not know. @param {JournalEvent} event */
function describeFields(event) {
  const { eventId: _, TYPE: __, key: ___, ...fields } = event;
  return clean(Object.entries(fields).map(([name, value]) => `${name} ${typeof value === "string" ? value : JSON.stringify(value)}`).join("  "));
}

/** An engine event as a line: `order 203 moved from render to deploy`. Empty for an event of a producer.
 * @param {JournalEvent} event */
export function describeEngineEvent(event) {
  if (!isEngineEvent(event)) return "";
  return DESCRIPTIONS[event.TYPE]?.(event) ?? describeFields(event);
}
