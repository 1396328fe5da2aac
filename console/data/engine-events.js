// Engine events: recognizing them, and describing them as sentences in the words of `pointsman watch`.

/** @typedef {import("./api-types.js").JournalEvent} JournalEvent */

/** Whether the engine published the event.
 * @param {JournalEvent} event */
export function isEngineEvent(event) {
  return event.tenant === undefined;
}

/** The task id of a TaskEvent.
 * @param {JournalEvent} event */
export function eventTaskId(event) {
  const key = /** @type {{taskId?: unknown} | null | undefined} */ (event.key);
  return typeof key === "object" && typeof key?.taskId === "string" ? key.taskId : null;
}

/** Names of the kinds of configured objects by the prefix of their key. @type {Record<string, string>} */
const KIND_NAMES = { Job: "handler", JobChain: "chain" };

/** @type {Record<string, string>} */
const FILE_CHANGES = { FileBasedAdded: "added", FileBasedRemoved: "removed", FileBasedReplaced: "replaced", FileBasedActivated: "activated" };

/** Replaces control characters, which could break or reorder a line. @param {unknown} text */
function replaceControlCharacters(text) {
  return String(text).replace(/[\p{Cc}\p{Cf}]/gu, " ");
}

/** A template tag: the line, or null if one of its values is missing.
 * @param {TemplateStringsArray} parts @param {...unknown} values
 * @returns {string | null} */
function lineOrNull(parts, ...values) {
  if (values.some((value) => value === undefined || value === null)) return null;
  return parts.map((part, index) => (index < values.length ? part + replaceControlCharacters(values[index]) : part)).join("");
}

/** The chain and the id of an order, from its path.
 * @param {unknown} key
 * @returns {{chain?: string, id?: string}} */
function parseOrderKey(key) {
  const match = /^(?:Order:)?(.+),([^,]+)$/s.exec(typeof key === "string" ? key : "");
  return match ? { chain: match[1], id: match[2] } : {};
}

/** @param {JournalEvent} event */
function describeFileChange({ TYPE, key, nodeId }) {
  const [, prefix, name] = /^(\w+):(.*)$/s.exec(String(key)) ?? [];
  const { chain, id } = parseOrderKey(key);
  if (prefix === "Order" && TYPE === "FileBasedAdded") return lineOrNull`order ${id} added to ${chain} at ${nodeId}`;
  if (prefix === "Order" && TYPE === "FileBasedRemoved") return lineOrNull`order ${id} removed from ${chain}`;
  if (prefix === undefined) return null;
  const kind = KIND_NAMES[prefix] ?? prefix.toLowerCase();
  return lineOrNull`${kind} ${prefix === "JobChain" ? name : name.replace(/^\//, "")} ${FILE_CHANGES[TYPE]}`;
}

/** @param {JournalEvent} event */
function describeStepEnd({ key, nodeTransition }) {
  const { id } = parseOrderKey(key);
  const { TYPE, returnCode } = /** @type {{TYPE?: string, returnCode?: number}} */ (nodeTransition ?? {});
  if (TYPE === "Success") return lineOrNull`step of order ${id} succeeded`;
  if (TYPE === "Error") return lineOrNull`step of order ${id} failed with return code ${returnCode}`;
  return TYPE === "Keep" ? lineOrNull`step of order ${id} will run again` : null;
}

/** The handler of a TaskEvent. @param {JournalEvent} event */
function handlerName({ key }) {
  const { jobPath } = /** @type {{jobPath?: string}} */ (key ?? {});
  return jobPath?.replace(/^\//, "");
}

/** @type {Record<string, (event: JournalEvent) => string | null>} */
const LINE_BUILDERS = {
  FileBasedAdded: describeFileChange,
  FileBasedRemoved: describeFileChange,
  FileBasedReplaced: describeFileChange,
  FileBasedActivated: describeFileChange,
  OrderStarted: ({ key, nodeId }) => lineOrNull`order ${parseOrderKey(key).id} started at ${nodeId}`,
  OrderStepStarted: ({ key, nodeId }) => lineOrNull`order ${parseOrderKey(key).id} runs step ${nodeId}`,
  OrderStepEnded: describeStepEnd,
  OrderSetBack: ({ key, nodeId }) => lineOrNull`order ${parseOrderKey(key).id} is set back at ${nodeId} and will be retried`,
  OrderNodeChanged: ({ key, fromNodeId, nodeId }) => lineOrNull`order ${parseOrderKey(key).id} moved from ${fromNodeId} to ${nodeId}`,
  OrderSuspended: ({ key }) => lineOrNull`order ${parseOrderKey(key).id} suspended`,
  OrderResumed: ({ key }) => lineOrNull`order ${parseOrderKey(key).id} resumed`,
  OrderFinished: ({ key, nodeId }) => lineOrNull`order ${parseOrderKey(key).id} finished at ${nodeId}`,
  JobChainStateChanged: ({ key, state }) => lineOrNull`chain ${key} is now ${state}`,
  JobChainNodeActionChanged: ({ key, nodeId, action }) => lineOrNull`node ${nodeId} of chain ${key} set to ${action}`,
  TaskStarted: (event) => lineOrNull`task of handler ${handlerName(event)} started`,
  TaskEnded: (event) => lineOrNull`task of handler ${handlerName(event)} ended with return code ${event.returnCode}`,
  TaskClosed: (event) => lineOrNull`task of handler ${handlerName(event)} closed`,
  SchedulerStateChanged: ({ state }) => lineOrNull`scheduler is now ${state}`,
  SchedulerClosed: () => "scheduler closed",
};

/** The fields of an event, for types that this console does not know. @param {JournalEvent} event */
function describeFields(event) {
  const { eventId: _, TYPE: __, key: ___, ...fields } = event;
  return replaceControlCharacters(Object.entries(fields).map(([name, value]) => `${name} ${typeof value === "string" ? value : JSON.stringify(value)}`).join("  "));
}

/** An engine event as a line: `order 203 moved from render to deploy`. Empty for an event of a producer.
 * @param {JournalEvent} event */
export function describeEngineEvent(event) {
  if (!isEngineEvent(event)) return "";
  return LINE_BUILDERS[event.TYPE]?.(event) ?? describeFields(event);
}
