// The audit log: each change with its author, time, target and reason.

import { api } from "../../data/api.js";
import { usePagedList } from "../../data/paged-list.js";
import { formatCount } from "../../data/numbers.js";
import { Button } from "../../parts/button.js";
import { cliCommand, CopyAsMenu } from "../../parts/copy.js";
import { ScreenHeader } from "../../parts/panel.js";
import { FilterBar } from "../../parts/filters.js";
import { EmptyState, LiveView } from "../../parts/states.js";
import { Table } from "../../parts/table.js";
import { RelativeTime, TimeWithDayUnlessToday } from "../../parts/time.js";
import { html, useEffect, useMemo } from "../../parts/ui.js";
import { AuditTarget } from "./target.js";

/** @typedef {import("../../data/api-types.js").AuditEntry} AuditEntry */

/** How many entries a filter loads on its own. */
const MAX_ENTRIES_LOADED_BY_FILTER = 2000;

/** @type {Record<string, string>} */
const ACTION_LABELS = {
  pause: "paused", unpause: "resumed", block: "blocked", unblock: "unblocked", retry: "retried", cancel: "cancelled",
  redrive: "started redrive", stop_redrive: "stopped redrive", adopt: "adopted", run: "ran", add: "added", change: "changed",
  suspend: "suspended", resume: "resumed", remove: "removed", stop: "stopped", start: "started", set: "set",
};

/** @param {{query: Record<string, string>}} props */
export default function Audit({ query }) {
  const pagedEntries = usePagedList({
    read: async (before, signal) => {
      const page = await api.get("/api/v1/audit", { query: { before, limit: 200 }, signal });
      return { eventId: page.eventId, rows: /** @type {AuditEntry[]} */ (page.entries), next: page.next };
    },
    rowId: (entry) => entry.number,
    filter: { types: ["OrderEvent", "JobChainEvent", "FileBasedEvent"] },
    pollInterval: 3000,
  }, []);
  const loadedEntries = pagedEntries.data ?? [];
  const rows = useMemo(() => loadedEntries.filter(buildEntryFilter(query)), [pagedEntries.data, query.by, query.action, query.target]);
  const isFiltered = Boolean(query.by || query.action || query.target);
  // A filter with few matches loads older entries, up to `MAX_ENTRIES_LOADED_BY_FILTER`.
  const needsMore = isFiltered && rows.length < 50 && loadedEntries.length < MAX_ENTRIES_LOADED_BY_FILTER;
  useEffect(() => {
    if (needsMore) pagedEntries.loadMore?.();
  }, [needsMore, loadedEntries.length, pagedEntries.loadMore === null]);
  return html`
    <${ScreenHeader} title="Audit" subtitle=${pagedEntries.data && html`<span>${isFiltered ? `${formatCount(rows.length)} of the newest ${formatCount(loadedEntries.length)}` : `the newest ${formatCount(loadedEntries.length)}`}${pagedEntries.loadMore ? "" : ", all entries"}</span>`}>
      <${CopyAsMenu} call=${{ path: "/api/v1/audit", query: { limit: 100 } }} cli=${cliCommand("audit", "--limit", "100")} />
    <//>
    <${FilterBar} query=${query} fields=${[
      { name: "by", label: "Who", hint: "a token's name", suggestions: distinctValues(loadedEntries, "by"), width: 150 },
      { name: "action", label: "Action", choices: distinctValues(loadedEntries, "action").map((action) => /** @type {[string, string]} */ ([action, ACTION_LABELS[action] ?? action])) },
      { name: "target", label: "Target or reason", hint: "part of it", width: 220 },
    ]} />
    <${LiveView} live=${pagedEntries} lines=${12} errorTitle="The audit could not be loaded">${() => html`
      <${Table} fill label="Audit entries, newest first" columns=${COLUMNS} rows=${rows} id=${(/** @type {AuditEntry} */ entry) => String(entry.number)}
        onEnd=${pagedEntries.loadMore ?? undefined} empty=${html`<${EmptyAudit} isFiltered=${isFiltered} loadMore=${pagedEntries.loadMore} />`} />`}<//>`;
}

/** @param {Record<string, string>} query
 * @returns {(entry: AuditEntry) => boolean} */
function buildEntryFilter({ by = "", action = "", target = "" }) {
  const [authorPart, targetPart] = [by.toLowerCase(), target.toLowerCase()];
  return (entry) => entry.by.toLowerCase().includes(authorPart) && (!action || entry.action === action)
    && (!targetPart || `${entry.target} ${entry.detail}`.toLowerCase().includes(targetPart));
}

/** @param {AuditEntry[]} entries @param {"by" | "action"} name */
function distinctValues(entries, name) {
  return [...new Set(entries.map((entry) => entry[name]))].sort();
}

/** @param {{isFiltered: boolean, loadMore: (() => void) | null}} props */
function EmptyAudit({ isFiltered, loadMore }) {
  if (!isFiltered) return html`<${EmptyState} title="No audit entries yet" icon="audit"><p>Pauses, retries, added orders and other changes appear here with the name of the token.</p><//>`;
  return html`<${EmptyState} title="No entry matches" icon="filter">
    ${loadMore ? html`<p>Older entries were not searched yet.</p><${Button} onClick=${loadMore}>Search older entries<//>` : html`<p>Clear a filter to see more.</p>`}<//>`;
}

/** @type {import("../../parts/table.js").Column<AuditEntry>[]} */
const COLUMNS = [
  { name: "time", title: "Time", width: 156, cell: (entry) => html`<${TimeWithDayUnlessToday} at=${entry.time} withMillis=${false} />` },
  { name: "age", title: "Age", width: 78, onSmallScreens: true, cell: (entry) => html`<span class="soft"><${RelativeTime} at=${entry.time} /></span>` },
  { name: "by", title: "Who", grow: 32, onSmallScreens: true, cell: (entry) => html`<b title=${entry.by}>${entry.by}</b>` },
  { name: "action", title: "Action", width: 112, onSmallScreens: true, cell: (entry) => html`<span title=${entry.action}>${ACTION_LABELS[entry.action] ?? entry.action}</span>` },
  { name: "target", title: "Target", grow: 36, onSmallScreens: true, cell: (entry) => html`<${AuditTarget} text=${entry.target} />` },
  { name: "detail", title: "Reason or details", grow: 40, cell: (entry) => html`<span class="soft" title=${entry.detail}>${entry.detail}</span>` },
  { name: "number", title: "No.", width: 66, alignRight: true, cell: (entry) => html`<span class="faint">${entry.number}</span>` },
];
