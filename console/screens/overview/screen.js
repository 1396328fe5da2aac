// The overview: attention list, rates, latency and backlog.

import { useLiveData } from "../../data/live-data.js";
import { formatCompactNumber, formatCount } from "../../data/numbers.js";
import { boundTenant } from "../../data/session.js";
import { formatDuration, formatShortDuration } from "../../data/time.js";
import { LineChart } from "../../parts/chart.js";
import { cliCommand, CopyAsMenu } from "../../parts/copy.js";
import { ScreenHeader, Panel } from "../../parts/panel.js";
import { LiveView } from "../../parts/states.js";
import { html, useMemo } from "../../parts/ui.js";
import { AttentionList, listAttentionItems } from "./attention.js";
import { Backlog } from "./backlog.js";
import { LatestFailures } from "./failures.js";
import { countReadyTasks, readOverview } from "./data.js";
import { metricsSamples, useRateSampling } from "./samples.js";
import { Tile } from "./tile.js";

/** @typedef {import("./data.js").OverviewData} OverviewData */
/** @typedef {import("./samples.js").MetricsSample} MetricsSample */

export default function Overview() {
  useRateSampling();
  const live = useLiveData({ read: readOverview, filter: { tasks: true }, minInterval: 2000, pollInterval: 5000 }, []);
  return html`
    <${ScreenHeader} title="Overview" subtitle=${live.data && html`<${ServerSummary} overview=${live.data} />`}>
      <${CopyAsMenu} call=${{ path: "/api/v1/handlers" }} cli=${cliCommand("handlers", "list")} />
    <//>
    <${LiveView} live=${live} lines=${10}>${(/** @type {OverviewData} */ data) => html`
      <${Panel} title="Needs attention"><${AttentionList} items=${listAttentionItems(data, metricsSamples.value)} /><//>
      <${OverviewTiles} overview=${data} />
      <div class="charts">${boundTenant.value === null ? html`<${ThroughputChart} /><${LatencyChart} />` : html`<${ThroughputChart} />`}</div>
      <${Backlog} handlers=${data.handlers} rates=${metricsSamples.value.at(-1)?.rates ?? {}} />
      <${LatestFailures} tasks=${data.failures} />
    `}<//>`;
}

/** @param {{overview: OverviewData}} props */
function ServerSummary({ overview: { health, nodes } }) {
  const aliveNodeCount = nodes?.filter((node) => node.alive).length;
  return html`<span>Pointsman ${health?.version}</span><span>${health?.store?.kind}</span>
    ${aliveNodeCount !== undefined && html`<span>${aliveNodeCount === 1 ? "1 node" : `${aliveNodeCount} nodes`}</span>`}
    ${aliveNodeCount !== undefined && aliveNodeCount > 1 && html`<span class="faint">rates and latencies are those of the node that serves this page</span>`}`;
}

/** @param {{overview: OverviewData}} props */
function OverviewTiles({ overview: { handlers } }) {
  const samples = metricsSamples.value;
  const latestSample = samples.at(-1);
  /** @param {(handler: import("../../data/api-types.js").Handler) => number} count */
  const total = (count) => handlers.reduce((sum, handler) => sum + count(handler), 0);
  const waitingTaskCount = total(({ counts }) => counts.ready + counts.waiting + counts.scheduled);
  const runningTaskCount = total(({ counts }) => counts.running);
  const readyTaskCount = total(countReadyTasks);
  const runnable = handlers.filter(countReadyTasks);
  const oldest = Math.max(0, ...runnable.map((handler) => handler.oldest_runnable_seconds ?? 0));
  /** @param {number | null | undefined} value */
  const formatRate = (value) => (value === null || value === undefined ? "–" : formatCompactNumber(Number(value.toFixed(1))));
  const recent = samples.slice(-60);
  return html`<div class="tiles">
    <${Tile} name="Events" value=${formatRate(latestSample?.events)} unit="/s" values=${recent.map((sample) => sample.events)} />
    <${Tile} name="Succeeded" value=${formatRate(latestSample?.succeeded)} unit="/s" values=${recent.map((sample) => sample.succeeded)} />
    <${Tile} name="Failed" value=${formatRate(latestSample?.failed)} unit="/s" isBad=${(latestSample?.failed ?? 0) > 0} values=${recent.map((sample) => sample.failed)} />
    ${boundTenant.value === null && html`<${Tile} name="Start latency, p95" value=${latestLatency(samples, "startP95")} values=${recent.map((sample) => sample.startP95)} />`}
    <${Tile} name="Waiting" value=${formatCompactNumber(waitingTaskCount)} note=${`${formatCount(readyTaskCount)} ready`} />
    <${Tile} name="Running" value=${formatCompactNumber(runningTaskCount)} note=${latestSample?.slots ? `${latestSample.busySlots} of ${latestSample.slots} slots` : ""} />
    <${Tile} name="Oldest ready" value=${oldest ? formatShortDuration(oldest * 1000) : "none"} isBad=${oldest > 60} />
  </div>`;
}

/** The latest measured value: idle samples have none.
 * @param {MetricsSample[]} samples @param {"startP95" | "emitP95"} name */
function latestLatency(samples, name) {
  const found = samples.slice(-15).reverse().find((sample) => sample[name] !== null);
  return found ? formatDuration(Number(found[name])) : "–";
}

/** @param {((sample: MetricsSample) => number | null)[]} getValues
 * @returns {[number[], ...(number | null)[][]]} */
function chartData(...getValues) {
  const samples = metricsSamples.value;
  return [samples.map((sample) => sample.at), ...getValues.map((getValue) => samples.map(getValue))];
}

function ThroughputChart() {
  const samples = metricsSamples.value;
  const data = useMemo(() => chartData((sample) => sample.events, (sample) => sample.succeeded, (sample) => sample.failed), [samples]);
  return html`<${Panel} title="Throughput" aside="per second"><${LineChart} data=${data} label="Events, succeeded attempts and failed attempts per second, over the last ten minutes"
    lines=${[{ name: "events", tone: "accent", fill: true }, { name: "succeeded", tone: "good" }, { name: "failed", tone: "bad" }]} /><//>`;
}

function LatencyChart() {
  const samples = metricsSamples.value;
  const data = useMemo(() => chartData((sample) => sample.startP50, (sample) => sample.startP95, (sample) => sample.emitP95), [samples]);
  return html`<${Panel} title="Latency" aside="of the node that serves this page"><${LineChart} data=${data} formatValue=${formatDuration} label="Start latency (median and 95th percentile) and emit latency (95th percentile), over the last ten minutes"
    lines=${[{ name: "start, p50", tone: "muted" }, { name: "start, p95", tone: "accent" }, { name: "emit, p95", tone: "warn" }]} /><//>`;
}
