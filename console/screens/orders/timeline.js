// Builds the timeline of an order from its events: steps and waits per node.

import { isEngineEvent } from "../../data/engine-events.js";
import { eventKeyText } from "../../data/stream-filter.js";
import { pluralize } from "../../data/numbers.js";
import { formatDuration } from "../../data/time.js";
import { navigate, screenPaths } from "../../shell/router.js";

/** @typedef {import("../../data/api-types.js").JournalEvent} JournalEvent */
/** @typedef {import("../../parts/timeline.js").TimelineRow} TimelineRow */
/** @typedef {import("../../parts/timeline.js").TimelineBar} TimelineBar */

/** @param {JournalEvent} event */
function eventMillis({ eventId }) {
  return eventId / 1000;
}

/** The events of the latest order with this path. Earlier orders may have had the same id.
 * @param {JournalEvent[]} events the oldest first @param {string} path */
export function filterOrderEvents(events, path) {
  const all = events.filter((event) => isEngineEvent(event) && [path, `Order:${path}`].includes(eventKeyText(event) ?? ""));
  const addedIndex = all.findLastIndex((event) => event.TYPE === "FileBasedAdded");
  return all.slice(Math.max(0, addedIndex));
}

/** Whether the last step failed: the order then reached its end through `on_error`.
 * @param {JournalEvent[]} events those of the order, the oldest first */
function hasLastStepFailed(events) {
  const lastStepEndEvent = events.findLast((event) => event.TYPE === "OrderStepEnded");
  return /** @type {{TYPE?: string} | undefined} */ (lastStepEndEvent?.nodeTransition)?.TYPE === "Error";
}

/** How and when the order ended; null if it has not.
 * @param {JournalEvent[]} events those of the order, the oldest first
 * @returns {{at: number, tone: import("../../parts/badge.js").Tone, label: string} | null} */
export function describeOrderEnd(events) {
  const finishedEvent = events.findLast((event) => event.TYPE === "OrderFinished");
  if (finishedEvent && hasLastStepFailed(events)) return { at: eventMillis(finishedEvent), tone: "bad", label: `Failed at ${finishedEvent.nodeId}` };
  if (finishedEvent) return { at: eventMillis(finishedEvent), tone: "good", label: `Finished at ${finishedEvent.nodeId}` };
  const removed = events.findLast((event) => event.TYPE === "FileBasedRemoved");
  return removed ? { at: eventMillis(removed), tone: "off", label: "Removed" } : null;
}

/** How a step ended, by the type of its node transition.
 * @type {Record<string, [import("../../parts/badge.js").Tone, string]>} */
const STEP_END_LABELS = { Success: ["good", "step succeeded"], Error: ["bad", "step failed"], Keep: ["bad", "step failed, will be retried"] };

/** One row per chain node, in the sequence in which the order reached them.
 * @param {JournalEvent[]} events those of the order, the oldest first @param {boolean} isActive whether the order is unfinished
 * @returns {TimelineRow[]} */
export function timelineRows(events, isActive) {
  /** @type {Map<string, TimelineRow>} */
  const rows = new Map();
  let currentNode = "";
  /** The bar that has not ended. @type {(TimelineBar & {kind: string}) | null} */
  let openBar = null;
  /** @param {string} name */
  const rowOf = (name) => {
    let row = rows.get(name);
    if (!row) rows.set(name, (row = { name, bars: [] }));
    return row;
  };
  /** @param {number} time @param {Partial<TimelineBar>} [changes] */
  const closeBar = (time, changes = {}) => {
    // Waits without a duration are not drawn; steps are.
    if (openBar && (time > openBar.from || openBar.kind === "step")) {
      const { kind: _, ...bar } = openBar;
      rowOf(currentNode).bars.push({ ...bar, to: time, ...changes });
    }
    openBar = null;
  };
  /** @param {string} kind @param {number} time @param {import("../../parts/badge.js").Tone} tone @param {string}
   * title @param {() => void} [onOpen] */
  const startBar = (kind, time, tone, title, onOpen) => {
    openBar = { kind, from: time, to: null, tone, title: `${currentNode}: ${title}`, onOpen };
  };
  for (const event of events) {
    const time = eventMillis(event);
    const nodeId = typeof event.nodeId === "string" ? event.nodeId : currentNode;
    if (event.TYPE === "FileBasedAdded") {
      currentNode = nodeId;
      rowOf(currentNode);
      startBar("wait", time, "idle", "waiting");
    } else if (event.TYPE === "OrderStepStarted") {
      closeBar(time);
      currentNode = nodeId;
      const task = String(event.taskId);
      startBar("step", time, "busy", "step running", () => navigate(screenPaths.task(task)));
    } else if (event.TYPE === "OrderStepEnded") {
      const transitionType = /** @type {{TYPE?: string}} */ (event.nodeTransition)?.TYPE ?? "";
      const [tone, label] = STEP_END_LABELS[transitionType] ?? ["idle", transitionType];
      closeBar(time, { tone, title: `${currentNode}: ${label}` });
      startBar("wait", time, "idle", "waiting");
    } else if (event.TYPE === "OrderSetBack") {
      closeBar(time);
      currentNode = nodeId;
      startBar("wait", time, "warn", "waiting to be retried");
    } else if (event.TYPE === "OrderNodeChanged") {
      closeBar(time);
      currentNode = nodeId;
      rowOf(currentNode);
      startBar("wait", time, "idle", "waiting");
    } else if (event.TYPE === "OrderSuspended") {
      if (/** @type {{kind?: string} | null} */ (openBar)?.kind === "step") continue;
      closeBar(time);
      startBar("wait", time, "off", "suspended");
    } else if (event.TYPE === "OrderResumed") {
      closeBar(time);
      startBar("wait", time, "idle", "waiting");
    } else if (event.TYPE === "OrderFinished") {
      closeBar(time);
      currentNode = nodeId;
      const failed = hasLastStepFailed(events);
      rowOf(currentNode).bars.push({ from: time, to: time, tone: failed ? "bad" : "good", title: `${currentNode}: ${failed ? "ended after an error" : "finished"}` });
    } else if (event.TYPE === "FileBasedRemoved") {
      closeBar(time);
    }
  }
  if (openBar && isActive) {
    const { kind: _, ...bar } = /** @type {TimelineBar & {kind: string}} */ (openBar);
    rowOf(currentNode).bars.push(bar);
  }
  return [...rows.values()].map((row) => addStepDurationToName(row, orderDurationMillis(events, isActive)));
}

/** Duration of the order so far. @param {JournalEvent[]} events @param {boolean} isActive */
function orderDurationMillis(events, isActive) {
  return (isActive ? Date.now() : eventMillis(events[events.length - 1])) - eventMillis(events[0]);
}

/** Adds the duration of the steps to the name. Steps are drawn above waits; very short waits are left out.
 * @param {TimelineRow} row @param {number} totalMillis
 * @returns {TimelineRow} */
function addStepDurationToName({ name, bars }, totalMillis) {
  const stepBars = bars.filter((bar) => bar.onOpen);
  const stepMillis = stepBars.reduce((sum, bar) => sum + (bar.to ?? Date.now()) - bar.from, 0);
  return {
    name: stepBars.length ? `${name} · ${formatDuration(stepMillis)}` : name,
    title: stepBars.length ? `${name}: ${pluralize(stepBars.length, "step")}, ${formatDuration(stepMillis)}` : name,
    bars: [...bars.filter((bar) => !bar.onOpen && (bar.to === bar.from || (bar.to ?? Date.now()) - bar.from > totalMillis / 200)), ...stepBars],
  };
}
