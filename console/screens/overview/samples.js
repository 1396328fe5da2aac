// How fast things go: a reading of the node's metrics every two seconds while somebody looks, kept for ten minutes.
// Tokens that are bound to a tenant may not read metrics; for them the stream is counted.

import { api } from "../../data/api.js";
import { listen } from "../../data/live.js";
import { parse, quantiles, sum } from "../../data/metrics.js";
import { bound } from "../../data/session.js";
import { signal, useEffect } from "../../parts/ui.js";

/** @typedef {import("../../data/metrics.js").Metrics} Metrics */

/** Numbers are a second's. Null is where nothing was measured.
 * @typedef {{at: number, events: number | null, succeeded: number | null, failed: number | null, start50: number | null,
 *   start95: number | null, emit95: number | null, slots: number | null, busy: number | null,
 *   rates: Record<string, {ended: number, failed: number}>}} Sample */

const EVERY_MS = 2000;
const MOST = 300;

/** The oldest first. @type {import("../../vendor/signals.js").Signal<Sample[]>} */
export const samples = signal([]);

/** @param {Sample} sample */
function add(sample) {
  const last = samples.value.at(-1);
  const kept = samples.value.slice(-MOST + 2);
  // Where nobody looked for a while the line breaks.
  const gap = last && sample.at - last.at > EVERY_MS * 3 ? [empty(last.at + 1)] : [];
  samples.value = [...kept, ...gap, sample];
}

/** @param {number} at
 * @returns {Sample} */
function empty(at) {
  return { at, events: null, succeeded: null, failed: null, start50: null, start95: null, emit95: null, slots: null, busy: null, rates: {} };
}

export function useSamples() {
  useEffect(() => (bound.value === null ? measure() : count()), [bound.value]);
}

function measure() {
  /** @type {{metrics: Metrics, at: number} | null} */
  let before = null;
  let over = false;
  let asking = false;
  const look = async () => {
    // One at a time, however long it takes.
    if (asking) return;
    asking = true;
    try {
      const metrics = parse(await api.get("/metrics"));
      const now = { metrics, at: Date.now() };
      if (before && !over) add(difference(before, now));
      before = now;
    } catch {
      // The server does not answer; the line breaks there.
      before = null;
    }
    asking = false;
  };
  look();
  const timer = setInterval(() => {
    if (!document.hidden) look();
  }, EVERY_MS);
  return () => {
    over = true;
    clearInterval(timer);
  };
}

/** @param {{metrics: Metrics, at: number}} before @param {{metrics: Metrics, at: number}} now
 * @returns {Sample} */
function difference(before, now) {
  const seconds = Math.max(0.001, (now.at - before.at) / 1000);
  /** A server that was started anew counts from the beginning.
   * @param {string} name @param {Record<string, string>} [labels] */
  const rate = (name, labels) => {
    const grown = sum(now.metrics, name, labels) - sum(before.metrics, name, labels);
    return grown < 0 ? null : grown / seconds;
  };
  const events = rate("pointsman_events_emitted_total");
  if (events === null) return empty(now.at);
  const [start50, start95] = quantiles(before.metrics, now.metrics, "pointsman_start_latency_seconds", [0.5, 0.95]);
  const [emit95] = quantiles(before.metrics, now.metrics, "pointsman_emit_seconds", [0.95]);
  /** @type {Sample["rates"]} */
  const rates = {};
  for (const { labels } of now.metrics.get("pointsman_task_attempts_total") ?? []) {
    const { handler } = labels;
    rates[handler] ??= {
      ended: rate("pointsman_task_attempts_total", { handler }) ?? 0,
      failed: rate("pointsman_task_attempts_total", { handler, end: "failed" }) ?? 0,
    };
  }
  return {
    at: now.at, events, start50, start95, emit95, rates,
    succeeded: rate("pointsman_task_attempts_total", { end: "succeeded" }),
    failed: rate("pointsman_task_attempts_total", { end: "failed" }),
    slots: sum(now.metrics, "pointsman_slots"),
    busy: sum(now.metrics, "pointsman_slots_busy"),
  };
}

function count() {
  const seconds = EVERY_MS / 1000;
  let events = 0;
  let succeeded = 0;
  let failed = 0;
  /** @type {Sample["rates"]} */
  let rates = {};
  const quiet = listen({ tasks: true }, {
    events: (list) => { events += list.length; },
    tasks: (list) => {
      for (const { handler, status, error } of list) {
        const bad = status !== "SUCCESS" && error !== null && status !== "RUNNING";
        if (status === "SUCCESS") succeeded += 1;
        if (bad) failed += 1;
        if (status !== "SUCCESS" && !bad) continue;
        const rate = (rates[handler] ??= { ended: 0, failed: 0 });
        rate.ended += 1 / seconds;
        if (bad) rate.failed += 1 / seconds;
      }
    },
  });
  const timer = setInterval(() => {
    if (document.hidden) return;
    add({ ...empty(Date.now()), events: events / seconds, succeeded: succeeded / seconds, failed: failed / seconds, rates });
    events = succeeded = failed = 0;
    rates = {};
  }, EVERY_MS);
  return () => {
    quiet();
    clearInterval(timer);
  };
}
