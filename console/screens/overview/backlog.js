// The backlog by handler.

import { formatCompactNumber } from "../../data/numbers.js";
import { formatDuration } from "../../data/time.js";
import { Badge } from "../../parts/badge.js";
import { Panel } from "../../parts/panel.js";
import { HandlerLink } from "../../parts/link.js";
import { EmptyState } from "../../parts/states.js";
import { Table } from "../../parts/table.js";
import { html, useMemo } from "../../parts/ui.js";
import { navigate, screenPaths } from "../../shell/router.js";
import { countReadyTasks } from "./data.js";

/** @typedef {import("../../data/api-types.js").Handler} Handler */
/** @typedef {Handler & {rate: {ended: number, failed: number} | undefined, ready: number, waiting: number, total: number, maxTotal: number}}
 * BacklogRow */

/** @param {number} number */
function countCell(number) {
  return number ? formatCompactNumber(number) : html`<span class="faint">0</span>`;
}

/** @type {import("../../parts/table.js").Column<BacklogRow>[]} */
const COLUMNS = [
  { name: "name", title: "Handler", grow: 26, onSmallScreens: true, cell: (row) => html`<${HandlerLink} name=${row.name} />` },
  { name: "state", title: "State", width: 110, onSmallScreens: true, cell: stateCell },
  { name: "bar", title: "Backlog", grow: 24, cell: backlogBar },
  { name: "ready", title: "Ready", width: 70, alignRight: true, onSmallScreens: true, cell: (row) => countCell(row.ready) },
  { name: "waiting", title: "Waiting", width: 70, alignRight: true, cell: (row) => countCell(row.waiting) },
  { name: "running", title: "Running", width: 70, alignRight: true, cell: (row) => countCell(row.counts.running) },
  { name: "oldest", title: "Oldest", width: 90, alignRight: true, cell: (row) => (row.oldest_runnable_seconds === null ? html`<span class="faint">–</span>` : formatDuration(row.oldest_runnable_seconds * 1000)) },
  { name: "rate", title: "Ended", width: 76, alignRight: true, cell: (row) => (row.rate ? `${formatCompactNumber(Number(row.rate.ended.toFixed(1)))}/s` : html`<span class="faint">–</span>`) },
  { name: "failed", title: "Failed", width: 76, alignRight: true, cell: (row) => (row.rate?.failed ? html`<span class="bad-text">${formatCompactNumber(Number(row.rate.failed.toFixed(1)))}/s</span>` : html`<span class="faint">–</span>`) },
];

/** @param {BacklogRow} row */
function stateCell({ counts, ready, rules, defined }) {
  const rule = rules[0];
  if (rule) return html`<${Badge} tone=${rule.kind === "block" ? "bad" : "warn"} title=${rule.reason ?? ""}>${rule.kind === "block" ? "Blocked" : "Paused"}<//>`;
  if (counts.halted) return html`<${Badge} tone="bad">Halted<//>`;
  if (!defined || counts.missing) return html`<${Badge} tone="warn">Missing<//>`;
  if (counts.running) return html`<${Badge} tone="busy">Running<//>`;
  if (counts.ready + counts.scheduled > ready && !ready) return html`<${Badge} tone="warn" title="Its queues are paused, or their nodes are stopped">On hold<//>`;
  return html`<${Badge} tone="idle">Idle<//>`;
}

/** Widths are relative to the largest backlog. @param {BacklogRow} row */
function backlogBar({ counts, ready, waiting, maxTotal, total }) {
  const parts = /** @type {[string, number][]} */ ([["running", counts.running], ["ready", ready], ["waiting", waiting], ["stuck", counts.halted + counts.missing]]);
  const label = parts.filter(([, number]) => number).map(([name, number]) => `${number} ${name}`).join(", ") || "no tasks";
  return html`<span class="backlog-bar" role="img" aria-label=${label} title=${label}>
    ${parts.map(([name, number]) => number > 0 && html`<span key=${name} class=${name} style=${{ width: `${(number / maxTotal) * 100}%` }}></span>`)}
    ${total === 0 && html`<span class="none"></span>`}
  </span>`;
}

/** @param {{handlers: Handler[], rates: Record<string, {ended: number, failed: number}>}} props */
export function Backlog({ handlers, rates }) {
  const rows = useMemo(() => {
    /** @param {Handler} handler */
    const countTasks = ({ counts }) => counts.ready + counts.waiting + counts.scheduled + counts.running + counts.halted + counts.missing;
    const maxTotal = Math.max(1, ...handlers.map(countTasks));
    return handlers.map((handler) => {
      const ready = countReadyTasks(handler);
      const { counts } = handler;
      return { ...handler, rate: rates[handler.name], ready, waiting: counts.waiting + counts.ready + counts.scheduled - ready, total: countTasks(handler), maxTotal };
    })
      .sort((a, b) => b.total - a.total || a.name.localeCompare(b.name));
  }, [handlers, rates]);
  const openHandler = (/** @type {BacklogRow} */ row) => navigate(screenPaths.handler(row.name));
  return html`<${Panel} title="Backlog by handler" flush aside=${`${handlers.length} handlers`}>
    <${Table} label="Backlog by handler" columns=${COLUMNS} rows=${rows} id=${(/** @type {BacklogRow} */ row) => row.name} onOpen=${openHandler}
      empty=${html`<${EmptyState} title="There are no handlers" icon="handler"><p>Define them under <code>handlers:</code> in the configuration, and their events under <code>event_handlers:</code>.</p><//>`} />
  <//>`;
}
