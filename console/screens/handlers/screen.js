// The list of handlers and sources: state, backlog and rate.

import { api } from "../../data/api.js";
import { useLiveData } from "../../data/live-data.js";
import { formatCompactNumber, pluralize } from "../../data/numbers.js";
import { boundTenant } from "../../data/session.js";
import { formatDuration } from "../../data/time.js";
import { cliCommand, CopyAsMenu } from "../../parts/copy.js";
import { ScreenHeader } from "../../parts/panel.js";
import { FilterBar } from "../../parts/filters.js";
import { HandlerLink } from "../../parts/link.js";
import { Sparkline } from "../../parts/sparkline.js";
import { EmptyState, Notice, LiveView } from "../../parts/states.js";
import { Table } from "../../parts/table.js";
import { html, useMemo } from "../../parts/ui.js";
import { navigate, screenPaths } from "../../shell/router.js";
import { metricsSamples, useRateSampling } from "../overview/samples.js";
import { matchesHandlerState, limitHandlerToTenant, HandlerStateBadge, HANDLER_STATE_CHOICES, listTenantsWithQueues } from "./handler-state.js";

/** @typedef {import("../../data/api-types.js").Handler} Handler */
/** @typedef {Handler & {rate: {ended: number, failed: number} | undefined, trend: number[]}} HandlerRow */

/** Samples of the trend line: two minutes. */
const MAX_TREND_SAMPLES = 60;

/** @param {{query: Record<string, string>}} props */
export default function Handlers({ query }) {
  useRateSampling();
  const liveHandlers = useLiveData({
    read: (signal) => /** @type {Promise<{eventId: number, handlers: Handler[]}>} */ (api.get("/api/v1/handlers", { signal })),
    filter: { tasks: true },
    minInterval: 1500,
    pollInterval: 4000,
  }, []);
  const handlers = liveHandlers.data?.handlers ?? [];
  return html`
    <${ScreenHeader} title="Handlers" subtitle=${liveHandlers.data && renderHeaderCounts(handlers)}>
      <${CopyAsMenu} call=${{ path: "/api/v1/handlers" }} cli=${cliCommand("handlers")} />
    <//>
    <${FilterBar} query=${query} fields=${filterFields(handlers)} />
    <${LiveView} live=${liveHandlers} lines=${10} errorTitle="The handlers could not be loaded">${() => html`<${HandlerTable} handlers=${handlers} query=${query} />`}<//>`;
}

/** @param {Handler[]} handlers */
function renderHeaderCounts(handlers) {
  const pausedCount = handlers.filter((handler) => handler.rules.length > 0).length;
  const missingTaskCount = handlers.reduce((sum, handler) => sum + handler.counts.missing, 0);
  return html`<span>${pluralize(handlers.length, "handler")}</span>${pausedCount > 0 && html`<span>${pausedCount} paused or blocked</span>`}
    ${missingTaskCount > 0 && html`<span class="warn-text">${pluralize(missingTaskCount, "missing task")}</span>`}`;
}

/** @param {Handler[]} handlers */
function filterFields(handlers) {
  return [
    { name: "name", label: "Name", hint: "part of it", width: 180 },
    { name: "state", label: "State", choices: HANDLER_STATE_CHOICES },
    ...(boundTenant.value === null ? [{ name: "tenant", label: "Tenant", hint: "default", suggestions: listTenantsWithQueues(handlers), width: 130 }] : []),
  ];
}

/** @param {{handlers: Handler[], query: Record<string, string>}} props */
function HandlerTable({ handlers, query: { name = "", state = "", tenant } }) {
  const allSamples = metricsSamples.value;
  const rows = useMemo(() => {
    const recent = allSamples.slice(-MAX_TREND_SAMPLES);
    const namePart = name.toLowerCase();
    return handlers.map((handler) => limitHandlerToTenant(handler, tenant))
      .filter((handler) => handler.name.toLowerCase().includes(namePart) && matchesHandlerState(handler, state))
      .map((handler) => ({
        ...handler, rate: recent.at(-1)?.rates[handler.name],
        trend: recent.map((sample) => sample.rates[handler.name]?.ended ?? 0),
      }));
  }, [handlers, allSamples, name, state, tenant]);
  const uncountedQueues = tenant ? handlers.reduce((sum, handler) => sum + handler.more_queues, 0) : 0;
  return html`
    ${uncountedQueues > 0 && html`<${Notice}>Only the busiest queues are counted: ${pluralize(uncountedQueues, "queue")} may be missing from these numbers. The page of a handler shows more.<//>`}
    <${Table} fill label="Handlers" columns=${tenant ? COLUMNS.filter((column) => column.name !== "rate") : COLUMNS} rows=${rows}
      id=${(/** @type {HandlerRow} */ row) => row.name} onOpen=${(/** @type {HandlerRow} */ row) => navigate(screenPaths.handler(row.name))}
      rowClass=${(/** @type {HandlerRow} */ row) => row.rules.length > 0 && "row-paused"}
      empty=${html`<${NoHandlers} isEmpty=${handlers.length === 0} />`} />`;
}

/** @param {{isEmpty: boolean}} props */
function NoHandlers({ isEmpty }) {
  if (!isEmpty) return html`<${EmptyState} title="No handler matches" icon="filter"><p>Clear a filter to see more.</p><//>`;
  return html`<${EmptyState} title="There are no handlers" icon="handler">
    <p>Define them under <code>handlers:</code> in the configuration, and their events under <code>event_handlers:</code>. Changes are loaded within a second.</p><//>`;
}

/** @param {number} number @param {string} [tone] */
function countCell(number, tone = "") {
  return number ? html`<span class=${tone}>${formatCompactNumber(number)}</span>` : html`<span class="faint">0</span>`;
}

/** @type {import("../../parts/table.js").Column<HandlerRow>[]} */
const COLUMNS = [
  { name: "name", title: "Handler", grow: 24, onSmallScreens: true, cell: (row) => html`<${HandlerLink} name=${row.name} />${row.source && html` <span class="tag">source</span>`}` },
  { name: "state", title: "State", width: 124, onSmallScreens: true, cell: (row) => html`<${HandlerStateBadge} handler=${row} />` },
  { name: "run", title: "Run", grow: 30, cell: (row) => html`<span title=${row.target ?? ""}>${row.run ?? html`<span class="faint">not on this node</span>`} <span class="faint">${row.target ?? ""}</span></span>` },
  { name: "ready", title: "Ready", width: 64, alignRight: true, onSmallScreens: true, cell: (row) => countCell(row.counts.ready + row.counts.scheduled) },
  { name: "waiting", title: "Waiting", width: 68, alignRight: true, cell: (row) => countCell(row.counts.waiting) },
  { name: "running", title: "Running", width: 78, alignRight: true, cell: (row) => html`${countCell(row.counts.running)}${row.limits?.concurrency ? html`<span class="faint"> of ${row.limits.concurrency}</span>` : ""}` },
  { name: "stuck", title: "Stuck", width: 58, alignRight: true, cell: (row) => countCell(row.counts.halted + row.counts.missing, "bad-text") },
  { name: "oldest", title: "Oldest", width: 106, alignRight: true, cell: (row) => (row.oldest_runnable_seconds === null ? html`<span class="faint">–</span>` : formatDuration(row.oldest_runnable_seconds * 1000)) },
  { name: "rate", title: "Ended per second", width: 156, alignRight: true, cell: rateCell },
];

/** @param {HandlerRow} row */
function rateCell({ rate, trend, name }) {
  const text = rate ? formatCompactNumber(Number(rate.ended.toFixed(1))) : "–";
  return html`<span class="trend"><${Sparkline} values=${trend} width=${64} height=${18} maxValue=${1} label=${`${name}: ended attempts over the last two minutes`} />
    <span>${rate?.failed ? html`<span class="bad-text" title="failed">${formatCompactNumber(Number(rate.failed.toFixed(1)))} ✕</span> ` : ""}${text}</span></span>`;
}
