// Samples the metrics of the node every two seconds while a screen needs them, and keeps ten minutes.
// Tokens that are bound to a tenant may not read metrics; for them the events of the stream are counted.

import { api } from "../../data/api.js";
import { subscribe } from "../../data/stream.js";
import { parseMetrics, quantilesBetween, sumMetric } from "../../data/metrics.js";
import { boundTenant } from "../../data/session.js";
import { signal, useEffect } from "../../parts/ui.js";

/** @typedef {import("../../data/metrics.js").Metrics} Metrics */

/** Rates per second. Null where nothing was measured.
 * @typedef {{at: number, events: number | null, succeeded: number | null, failed: number | null, start50: number | null,
 *   start95: number | null, emit95: number | null, slots: number | null, busy: number | null,
 *   rates: Record<string, {ended: number, failed: number}>}} MetricsSample */

const SAMPLE_INTERVAL_MS = 2000;
const MAX_SAMPLES = 300;

/** The oldest first. @type {import("../../vendor/signals.js").Signal<MetricsSample[]>} */
export const samples = signal([]);

/** @param {MetricsSample} sample */
function addSample(sample) {
  const last = samples.value.at(-1);
  const recent = samples.value.slice(-MAX_SAMPLES + 2);
  // After a pause the line has a gap.
  const gap = last && sample.at - last.at > SAMPLE_INTERVAL_MS * 3 ? [emptySample(last.at + 1)] : [];
  samples.value = [...recent, ...gap, sample];
}

/** @param {number} at
 * @returns {MetricsSample} */
function emptySample(at) {
  return { at, events: null, succeeded: null, failed: null, start50: null, start95: null, emit95: null, slots: null, busy: null, rates: {} };
}

export function useSamples() {
  useEffect(() => (boundTenant.value === null ? sampleMetrics() : sampleStream()), [boundTenant.value]);
}

function sampleMetrics() {
  /** @type {{metrics: Metrics, at: number} | null} */
  let before = null;
  let isStopped = false;
  let isReading = false;
  const takeSample = async () => {
    // One request at a time.
    if (isReading) return;
    isReading = true;
    try {
      const metrics = parseMetrics(await api.get("/metrics"));
      const now = { metrics, at: Date.now() };
      if (before && !isStopped) addSample(sampleBetween(before, now));
      before = now;
    } catch {
      // The server does not respond: the line has a gap.
      before = null;
    }
    isReading = false;
  };
  takeSample();
  const timer = setInterval(() => {
    if (!document.hidden) takeSample();
  }, SAMPLE_INTERVAL_MS);
  return () => {
    isStopped = true;
    clearInterval(timer);
  };
}

/** @param {{metrics: Metrics, at: number}} before @param {{metrics: Metrics, at: number}} now
 * @returns {MetricsSample} */
function sampleBetween(before, now) {
  const seconds = Math.max(0.001, (now.at - before.at) / 1000);
  /** Counters start at 0 after a restart.
   * @param {string} name @param {Record<string, string>} [labels] */
  const rate = (name, labels) => {
    const grown = sumMetric(now.metrics, name, labels) - sumMetric(before.metrics, name, labels);
    return grown < 0 ? null : grown / seconds;
  };
  const events = rate("pointsman_events_emitted_total");
  if (events === null) return emptySample(now.at);
  const [start50, start95] = quantilesBetween(before.metrics, now.metrics, "pointsman_start_latency_seconds", [0.5, 0.95]);
  const [emit95] = quantilesBetween(before.metrics, now.metrics, "pointsman_emit_seconds", [0.95]);
  /** @type {MetricsSample["rates"]} */
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
    slots: sumMetric(now.metrics, "pointsman_slots"),
    busy: sumMetric(now.metrics, "pointsman_slots_busy"),
  };
}

function sampleStream() {
  const seconds = SAMPLE_INTERVAL_MS / 1000;
  let events = 0;
  let succeeded = 0;
  let failed = 0;
  /** @type {MetricsSample["rates"]} */
  let rates = {};
  const unsubscribe = subscribe({ tasks: true }, {
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
    addSample({ ...emptySample(Date.now()), events: events / seconds, succeeded: succeeded / seconds, failed: failed / seconds, rates });
    events = succeeded = failed = 0;
    rates = {};
  }, SAMPLE_INTERVAL_MS);
  return () => {
    unsubscribe();
    clearInterval(timer);
  };
}
