// Samples rates every two seconds while a screen needs them, and keeps the samples of ten minutes. They are computed from
// the metrics of the node. A token that is bound to a tenant may not read metrics: the frames of the stream are counted.

import { api } from "../../data/api.js";
import { subscribe } from "../../data/stream.js";
import { parseMetrics, quantileMillisBetweenSamples, sumMetric } from "../../data/metrics.js";
import { boundTenant } from "../../data/session.js";
import { signal, useEffect } from "../../parts/ui.js";

/** @typedef {import("../../data/metrics.js").Metrics} Metrics */

/** Rates per second, latencies in milliseconds. Null where nothing was measured.
 * @typedef {{at: number, events: number | null, succeeded: number | null, failed: number | null, startP50: number | null,
 *   startP95: number | null, emitP95: number | null, slots: number | null, busySlots: number | null,
 *   rates: Record<string, {ended: number, failed: number}>}} MetricsSample */

const SAMPLE_INTERVAL_MS = 2000;
const MAX_SAMPLES = 300;

/** The oldest first. @type {import("../../vendor/signals.js").Signal<MetricsSample[]>} */
export const metricsSamples = signal([]);

/** @param {MetricsSample} sample */
function addSample(sample) {
  const last = metricsSamples.value.at(-1);
  const recent = metricsSamples.value.slice(-MAX_SAMPLES + 2);
  // After a pause the line has a gap.
  const gapSamples = last && sample.at - last.at > SAMPLE_INTERVAL_MS * 3 ? [emptySample(last.at + 1)] : [];
  metricsSamples.value = [...recent, ...gapSamples, sample];
}

/** @param {number} at
 * @returns {MetricsSample} */
function emptySample(at) {
  return { at, events: null, succeeded: null, failed: null, startP50: null, startP95: null, emitP95: null, slots: null, busySlots: null, rates: {} };
}

/** Takes samples while the component is rendered. */
export function useRateSampling() {
  useEffect(() => (boundTenant.value === null ? startSamplingMetrics() : startSamplingStream()), [boundTenant.value]);
}

function startSamplingMetrics() {
  /** @type {{metrics: Metrics, at: number} | null} */
  let previousReading = null;
  let isStopped = false;
  let isReading = false;
  const takeSample = async () => {
    // One request at a time.
    if (isReading) return;
    isReading = true;
    try {
      const metrics = parseMetrics(await api.get("/metrics"));
      const reading = { metrics, at: Date.now() };
      if (previousReading && !isStopped) addSample(computeSampleBetween(previousReading, reading));
      previousReading = reading;
    } catch {
      // The server does not respond: the line has a gap.
      previousReading = null;
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

/** @param {{metrics: Metrics, at: number}} before @param {{metrics: Metrics, at: number}} after
 * @returns {MetricsSample} */
function computeSampleBetween(before, after) {
  const seconds = Math.max(0.001, (after.at - before.at) / 1000);
  /** Counters start at 0 after a restart.
   * @param {string} name @param {Record<string, string>} [labels] */
  const rate = (name, labels) => {
    const increase = sumMetric(after.metrics, name, labels) - sumMetric(before.metrics, name, labels);
    return increase < 0 ? null : increase / seconds;
  };
  const events = rate("pointsman_events_emitted_total");
  if (events === null) return emptySample(after.at);
  const [startP50, startP95] = quantileMillisBetweenSamples(before.metrics, after.metrics, "pointsman_start_latency_seconds", [0.5, 0.95]);
  const [emitP95] = quantileMillisBetweenSamples(before.metrics, after.metrics, "pointsman_emit_seconds", [0.95]);
  /** @type {MetricsSample["rates"]} */
  const rates = {};
  for (const { labels } of after.metrics.get("pointsman_task_attempts_total") ?? []) {
    const { handler } = labels;
    rates[handler] ??= {
      ended: rate("pointsman_task_attempts_total", { handler }) ?? 0,
      failed: rate("pointsman_task_attempts_total", { handler, end: "failed" }) ?? 0,
    };
  }
  return {
    at: after.at, events, startP50, startP95, emitP95, rates,
    succeeded: rate("pointsman_task_attempts_total", { end: "succeeded" }),
    failed: rate("pointsman_task_attempts_total", { end: "failed" }),
    slots: sumMetric(after.metrics, "pointsman_slots"),
    busySlots: sumMetric(after.metrics, "pointsman_slots_busy"),
  };
}

function startSamplingStream() {
  const seconds = SAMPLE_INTERVAL_MS / 1000;
  let eventCount = 0;
  let succeededCount = 0;
  let failedCount = 0;
  /** @type {MetricsSample["rates"]} */
  let attemptRatesByHandler = {};
  const unsubscribe = subscribe({ tasks: true }, {
    onEvents: (list) => { eventCount += list.length; },
    onTaskChanges: (changes) => {
      for (const { handler, status, error } of changes) {
        const isFailure = status !== "SUCCESS" && error !== null && status !== "RUNNING";
        if (status === "SUCCESS") succeededCount += 1;
        if (isFailure) failedCount += 1;
        if (status !== "SUCCESS" && !isFailure) continue;
        const rate = (attemptRatesByHandler[handler] ??= { ended: 0, failed: 0 });
        rate.ended += 1 / seconds;
        if (isFailure) rate.failed += 1 / seconds;
      }
    },
  });
  const timer = setInterval(() => {
    if (document.hidden) return;
    addSample({ ...emptySample(Date.now()), events: eventCount / seconds, succeeded: succeededCount / seconds, failed: failedCount / seconds, rates: attemptRatesByHandler });
    eventCount = succeededCount = failedCount = 0;
    attemptRatesByHandler = {};
  }, SAMPLE_INTERVAL_MS);
  return () => {
    unsubscribe();
    clearInterval(timer);
  };
}
