// The way of an order, out of its events: what it did at which node, and for how long.

import { isEngineEvent, eventKeyText } from "../../data/filter.js";
import { pluralize } from "../../data/numbers.js";
import { formatDuration } from "../../data/time.js";
import { navigate, screenPaths } from "../../shell/router.js";

/** @typedef {import("../../data/filter.js").JournalEvent} JournalEvent */
/** @typedef {import("../../parts/timeline.js").TimelineRow} TimelineRow */
/** @typedef {import("../../parts/timeline.js").TimelineBar} TimelineBar */

/** @param {JournalEvent} event */
function eventMillis({ eventId }) {
  return eventId / 1000;
}

/** The events of the order that is, or was last, called so. An id may have been another one's before.
 * @param {JournalEvent[]} events the oldest first @param {string} path */
export function eventsOfOrder(events, path) {
  const all = events.filter((event) => isEngineEvent(event) && [path, `Order:${path}`].includes(eventKeyText(event) ?? ""));
  const begin = all.findLastIndex((event) => event.TYPE === "FileBasedAdded");
  return all.slice(Math.max(0, begin));
}

/** How an order came to its end, if it did. @param {JournalEvent[]} events its own */
export function orderEnding(events) {
  const last = events.findLast((event) => event.TYPE === "OrderFinished");
  if (last) return { at: eventMillis(last), node: String(last.nodeId), word: "arrived" };
  const removed = events.findLast((event) => event.TYPE === "FileBasedRemoved");
  return removed ? { at: eventMillis(removed), node: null, word: "removed" } : null;
}

/** @type {Record<string, [import("../../parts/badge.js").Tone, string]>} */
const STEP_ENDINGS = { Success: ["good", "step succeeded"], Error: ["bad", "step failed"], Keep: ["bad", "step failed, will be retried"] };

/** A row for each node it was at, in the order in which it came there.
 * @param {JournalEvent[]} events its own, the oldest first @param {boolean} there whether it is still on its way
 * @returns {TimelineRow[]} */
export function timelineRows(events, there) {
  /** @type {Map<string, TimelineRow>} */
  const found = new Map();
  let node = "";
  /** What goes on now. @type {(TimelineBar & {kind: string}) | null} */
  let open = null;
  /** @param {string} name */
  const row = (name) => {
    let one = found.get(name);
    if (!one) found.set(name, (one = { name, bars: [] }));
    return one;
  };
  /** @param {number} time @param {Partial<TimelineBar>} [how] */
  const close = (time, how = {}) => {
    // What began and ended in the same instant is nothing to look at, unless it is a step.
    if (open && (time > open.from || open.kind === "step")) {
      const { kind: _, ...bar } = open;
      row(node).bars.push({ ...bar, to: time, ...how });
    }
    open = null;
  };
  /** @param {string} kind @param {number} time @param {import("../../parts/badge.js").Tone} tone @param {string} title @param {() => void} [onOpen] */
  const begin = (kind, time, tone, title, onOpen) => {
    open = { kind, from: time, to: null, tone, title: `${node}: ${title}`, onOpen };
  };
  for (const event of events) {
    const time = eventMillis(event);
    const named = typeof event.nodeId === "string" ? event.nodeId : node;
    if (event.TYPE === "FileBasedAdded") {
      node = named;
      row(node);
      begin("wait", time, "idle", "waiting");
    } else if (event.TYPE === "OrderStepStarted") {
      close(time);
      node = named;
      const task = String(event.taskId);
      begin("step", time, "busy", "step running", () => navigate(screenPaths.task(task)));
    } else if (event.TYPE === "OrderStepEnded") {
      const end = /** @type {{TYPE?: string}} */ (event.nodeTransition)?.TYPE ?? "";
      const [tone, words] = STEP_ENDINGS[end] ?? ["idle", end];
      close(time, { tone, title: `${node}: ${words}` });
      begin("wait", time, "idle", "waiting");
    } else if (event.TYPE === "OrderSetBack") {
      close(time);
      node = named;
      begin("wait", time, "warn", "waiting to be retried");
    } else if (event.TYPE === "OrderNodeChanged") {
      close(time);
      node = named;
      row(node);
      begin("wait", time, "idle", "waiting");
    } else if (event.TYPE === "OrderSuspended") {
      if (/** @type {{kind?: string} | null} */ (open)?.kind === "step") continue;
      close(time);
      begin("wait", time, "off", "suspended");
    } else if (event.TYPE === "OrderResumed") {
      close(time);
      begin("wait", time, "idle", "waiting");
    } else if (event.TYPE === "OrderFinished") {
      close(time);
      node = named;
      row(node).bars.push({ from: time, to: time, tone: "good", title: `${node}: arrived` });
    } else if (event.TYPE === "FileBasedRemoved") {
      close(time);
    }
  }
  if (open && there) {
    const { kind: _, ...bar } = /** @type {TimelineBar & {kind: string}} */ (open);
    row(node).bars.push(bar);
  }
  return [...found.values()].map((one) => withStepDuration(one, totalMillis(events, there)));
}

/** How long all of it took. @param {JournalEvent[]} events @param {boolean} there */
function totalMillis(events, there) {
  return (there ? Date.now() : eventMillis(events[events.length - 1])) - eventMillis(events[0]);
}

/** A row with how long its steps took in its name. Steps lie above waits, and waits too short to be seen are left out.
 * @param {TimelineRow} row @param {number} span
 * @returns {TimelineRow} */
function withStepDuration({ name, bars }, span) {
  const steps = bars.filter((bar) => bar.onOpen);
  const took = steps.reduce((sum, bar) => sum + (bar.to ?? Date.now()) - bar.from, 0);
  return {
    name: steps.length ? `${name} · ${formatDuration(took)}` : name,
    title: steps.length ? `${name}: ${pluralize(steps.length, "step")}, ${formatDuration(took)}` : name,
    bars: [...bars.filter((bar) => !bar.onOpen && (bar.to === bar.from || (bar.to ?? Date.now()) - bar.from > span / 200)), ...steps],
  };
}
