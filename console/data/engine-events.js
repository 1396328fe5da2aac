// Engine events: recognizing them, and describing them as sentences in the words of `pointsman watch`.

/** @typedef {import("./api-types.js").JournalEvent} JournalEvent */

/** Whether the engine published the event.
 * @param {JournalEvent} event */
export function isEngineEvent(event) {
  return event.tenant === undefined;
}

/** The task id of a TaskEvent.
 * @param {JournalEvent} event */
export function taskIdOfTaskEvent(event) {
  const key = /** @type {{taskId?: unknown} | null | undefined} */ (event.key);
  return typeof key === "object" && typeof key?.taskId === "string" ? key.taskId : null;
}

/** Names of the kinds of configured objects by the prefix of their key. @type {Record<string, string>} */
const KIND_NAMES_BY_KEY_PREFIX = { Job: "handler", JobChain: "chain" };

/** @type {Record<string, string>} */
const FILE_CHANGE_VERBS = { FileBasedAdded: "added", FileBasedRemoved: "removed", FileBasedReplaced: "replaced", FileBasedActivated: "activated" };

/** Replaces control characters, which could break or reorder a line. @param {unknown} text */
function replaceControlCharacters(text) {
  return String(text).replace(/[\p{Cc}\p{Cf}]/gu, " ");
}

/** A template tag: the line, or null if one of its values is missing.
 * @param {TemplateStringsArray} parts @param {...unknown} values
 * @returns {string | null} */
function lineUnlessValueMissing(parts, ...values) {
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
  if (prefix === "Order" && TYPE === "FileBasedAdded") return lineUnlessValueMissing`order ${id} added to ${chain} at ${nodeId}`;
  if (prefix === "Order" && TYPE === "FileBasedRemoved") return lineUnlessValueMissing`order ${id} removed from ${chain}`;
  if (prefix === undefined) return null;
  const kind = KIND_NAMES_BY_KEY_PREFIX[prefix] ?? prefix.toLowerCase();
  return lineUnlessValueMissing`${kind} ${prefix === "JobChain" ? name : name.replace(/^\//, "")} ${FILE_CHANGE_VERBS[TYPE]}`;
}

/** @param {JournalEvent} event */
function describeStepEnd({ key, nodeTransition }) {
  const { id } = parseOrderKey(key);
  const { TYPE, returnCode } = /** @type {{TYPE?: string, returnCode?: number}} */ (nodeTransition ?? {});
  if (TYPE === "Success") return lineUnlessValueMissing`step of order ${id} succeeded`;
  if (TYPE === "Error") return lineUnlessValueMissing`step of order ${id} failed with return code ${returnCode}`;
  return TYPE === "Keep" ? lineUnlessValueMissing`step of order ${id} will run again` : null;
}

/** The handler of a TaskEvent. @param {JournalEvent} event */
function handlerNameOfTaskEvent({ key }) {
  const { jobPath } = /** @type {{jobPath?: string}} */ (key ?? {});
  return jobPath?.replace(/^\//, "");
}

/** @type {Record<string, (event: JournalEvent) => string | null>} */
const LINE_BUILDERS_BY_EVENT_TYPE = {
  FileBasedAdded: describeFileChange,
  FileBasedRemoved: describeFileChange,
  FileBasedReplaced: describeFileChange,
  FileBasedActivated: describeFileChange,
  OrderStarted: ({ key, nodeId }) => lineUnlessValueMissing`order ${parseOrderKey(key).id} started at ${nodeId}`,
  OrderStepStarted: ({ key, nodeId }) => lineUnlessValueMissing`order ${parseOrderKey(key).id} runs step ${nodeId}`,
  OrderStepEnded: describeStepEnd,
  OrderSetBack: ({ key, nodeId }) => lineUnlessValueMissing`order ${parseOrderKey(key).id} is set back at ${nodeId} and will be retried`,
  OrderNodeChanged: ({ key, fromNodeId, nodeId }) => lineUnlessValueMissing`order ${parseOrderKey(key).id} moved from ${fromNodeId} to ${nodeId}`,
  OrderSuspended: ({ key }) => lineUnlessValueMissing`order ${parseOrderKey(key).id} suspended`,
  OrderResumed: ({ key }) => lineUnlessValueMissing`order ${parseOrderKey(key).id} resumed`,
  OrderFinished: ({ key, nodeId }) => lineUnlessValueMissing`order ${parseOrderKey(key).id} finished at ${nodeId}`,
  JobChainStateChanged: ({ key, state }) => lineUnlessValueMissing`chain ${key} is now ${state}`,
  JobChainNodeActionChanged: ({ key, nodeId, action }) => lineUnlessValueMissing`node ${nodeId} of chain ${key} set to ${action}`,
  TaskStarted: (event) => lineUnlessValueMissing`task of handler ${handlerNameOfTaskEvent(event)} started`,
  TaskEnded: (event) => lineUnlessValueMissing`task of handler ${handlerNameOfTaskEvent(event)} ended with return code ${event.returnCode}`,
  TaskClosed: (event) => lineUnlessValueMissing`task of handler ${handlerNameOfTaskEvent(event)} closed`,
  SchedulerStateChanged: ({ state }) => lineUnlessValueMissing`scheduler is now ${state}`,
  SchedulerClosed: () => "scheduler closed",
};

/** The fields of an event, for types that this console does not know. @param {JournalEvent} event */
function describeUnknownEventFields(event) {
  const { eventId: _, TYPE: __, key: ___, ...fields } = event;
  return replaceControlCharacters(Object.entries(fields).map(([name, value]) => `${name} ${typeof value === "string" ? value : JSON.stringify(value)}`).join("  "));
}

/** An engine event as a line: `order 203 moved from render to deploy`. Empty for an event of a producer.
 * @param {JournalEvent} event */
export function describeEngineEvent(event) {
  if (!isEngineEvent(event)) return "";
  return LINE_BUILDERS_BY_EVENT_TYPE[event.TYPE]?.(event) ?? describeUnknownEventFields(event);
}
