// The way of an order, out of its events: what it did at which node, and for how long.

import { isEngine, keyOf } from "../../data/filter.js";
import { counted } from "../../data/numbers.js";
import { duration } from "../../data/time.js";
import { go, places } from "../../shell/router.js";

/** @typedef {import("../../data/filter.js").Event} Event */
/** @typedef {import("../../parts/timeline.js").Row} Row */
/** @typedef {import("../../parts/timeline.js").Bar} Bar */

/** @param {Event} event */
function at({ eventId }) {
  return eventId / 1000;
}

/** The events of the order that is, or was last, called so. An id may have been another one's before.
 * @param {Event[]} events the oldest first @param {string} path */
export function own(events, path) {
  const all = events.filter((event) => isEngine(event) && [path, `Order:${path}`].includes(keyOf(event) ?? ""));
  const begin = all.findLastIndex((event) => event.TYPE === "FileBasedAdded");
  return all.slice(Math.max(0, begin));
}

/** How an order came to its end, if it did. @param {Event[]} events its own */
export function ending(events) {
  const last = events.findLast((event) => event.TYPE === "OrderFinished");
  if (last) return { at: at(last), node: String(last.nodeId), word: "arrived" };
  const removed = events.findLast((event) => event.TYPE === "FileBasedRemoved");
  return removed ? { at: at(removed), node: null, word: "removed" } : null;
}

/** @type {Record<string, [import("../../parts/badge.js").Tone, string]>} */
const ENDS = { Success: ["good", "step succeeded"], Error: ["bad", "step failed"], Keep: ["bad", "step failed, will be retried"] };

/** A row for each node it was at, in the order in which it came there.
 * @param {Event[]} events its own, the oldest first @param {boolean} there whether it is still on its way
 * @returns {Row[]} */
export function rows(events, there) {
  /** @type {Map<string, Row>} */
  const found = new Map();
  let node = "";
  /** What goes on now. @type {(Bar & {kind: string}) | null} */
  let open = null;
  /** @param {string} name */
  const row = (name) => {
    let one = found.get(name);
    if (!one) found.set(name, (one = { name, bars: [] }));
    return one;
  };
  /** @param {number} time @param {Partial<Bar>} [how] */
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
    const time = at(event);
    const named = typeof event.nodeId === "string" ? event.nodeId : node;
    if (event.TYPE === "FileBasedAdded") {
      node = named;
      row(node);
      begin("wait", time, "idle", "waiting");
    } else if (event.TYPE === "OrderStepStarted") {
      close(time);
      node = named;
      const task = String(event.taskId);
      begin("step", time, "busy", "step running", () => go(places.task(task)));
    } else if (event.TYPE === "OrderStepEnded") {
      const end = /** @type {{TYPE?: string}} */ (event.nodeTransition)?.TYPE ?? "";
      const [tone, words] = ENDS[end] ?? ["idle", end];
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
    const { kind: _, ...bar } = /** @type {Bar & {kind: string}} */ (open);
    row(node).bars.push(bar);
  }
  return [...found.values()].map((one) => shown(one, span(events, there)));
}

/** How long all of it took. @param {Event[]} events @param {boolean} there */
function span(events, there) {
  return (there ? Date.now() : at(events[events.length - 1])) - at(events[0]);
}

/** A row with how long its steps took in its name. Steps lie above waits, and waits too short to be seen are left out.
 * @param {Row} row @param {number} span
 * @returns {Row} */
function shown({ name, bars }, span) {
  const steps = bars.filter((bar) => bar.onOpen);
  const took = steps.reduce((sum, bar) => sum + (bar.to ?? Date.now()) - bar.from, 0);
  return {
    name: steps.length ? `${name} · ${duration(took)}` : name,
    title: steps.length ? `${name}: ${counted(steps.length, "step")}, ${duration(took)}` : name,
    bars: [...bars.filter((bar) => !bar.onOpen && (bar.to === bar.from || (bar.to ?? Date.now()) - bar.from > span / 200)), ...steps],
  };
}
