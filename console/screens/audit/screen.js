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
  const entries = usePagedList({
    read: async (before, signal) => {
      const page = await api.get("/api/v1/audit", { query: { before, limit: 200 }, signal });
      return { eventId: page.eventId, rows: /** @type {AuditEntry[]} */ (page.entries), next: page.next };
    },
    rowId: (entry) => entry.number,
    filter: { types: ["OrderEvent", "JobChainEvent", "FileBasedEvent"] },
    pollInterval: 3000,
  }, []);
  const all = entries.data ?? [];
  const rows = useMemo(() => all.filter(buildEntryFilter(query)), [entries.data, query.by, query.action, query.target]);
  const filtered = Boolean(query.by || query.action || query.target);
  // A filter with few matches loads older entries, up to `MAX_ENTRIES_LOADED_BY_FILTER`.
  const needsMore = filtered && rows.length < 50 && all.length < MAX_ENTRIES_LOADED_BY_FILTER;
  useEffect(() => {
    if (needsMore) entries.loadMore?.();
  }, [needsMore, all.length, entries.loadMore === null]);
  return html`
    <${ScreenHeader} title="Audit" subtitle=${entries.data && html`<span>${filtered ? `${formatCount(rows.length)} of the newest ${formatCount(all.length)}` : `the newest ${formatCount(all.length)}`}${entries.loadMore ? "" : ", all entries"}</span>`}>
      <${CopyAsMenu} call=${{ path: "/api/v1/audit", query: { limit: 100 } }} cli=${cliCommand("audit", "--limit", "100")} />
    <//>
    <${FilterBar} query=${query} fields=${[
      { name: "by", label: "Who", hint: "a token's name", suggestions: distinctValues(all, "by"), width: 150 },
      { name: "action", label: "Action", choices: distinctValues(all, "action").map((action) => /** @type {[string, string]} */ ([action, ACTION_LABELS[action] ?? action])) },
      { name: "target", label: "Target or reason", hint: "part of it", width: 220 },
    ]} />
    <${LiveView} live=${entries} lines=${12} errorTitle="The audit could not be loaded">${() => html`
      <${Table} fill label="Audit entries, newest first" columns=${COLUMNS} rows=${rows} id=${(/** @type {AuditEntry} */ entry) => String(entry.number)}
        onEnd=${entries.loadMore ?? undefined} empty=${html`<${EmptyAudit} filtered=${filtered} loadMore=${entries.loadMore} />`} />`}<//>`;
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

/** @param {{filtered: boolean, loadMore: (() => void) | null}} props */
function EmptyAudit({ filtered, loadMore }) {
  if (!filtered) return html`<${EmptyState} title="No audit entries yet" icon="audit"><p>Pauses, retries, added orders and other changes appear here with the name of the token.</p><//>`;
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
