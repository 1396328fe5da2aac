// The audit: who changed what, when and why.

import { api } from "../../data/api.js";
import { usePages } from "../../data/paged-list.js";
import { formatCount } from "../../data/numbers.js";
import { Button } from "../../parts/button.js";
import { cliCommand, CopyAsMenu } from "../../parts/copy.js";
import { ScreenHeader } from "../../parts/panel.js";
import { FilterBar } from "../../parts/filters.js";
import { EmptyState, LiveView } from "../../parts/states.js";
import { Table } from "../../parts/table.js";
import { Ago, TimeOfDay } from "../../parts/time.js";
import { html, useEffect, useMemo } from "../../parts/ui.js";
import { AuditTarget } from "./target.js";

/** @typedef {import("../../data/api-types.js").AuditEntry} AuditEntry */

/** How far back a filter looks by itself. */
const MAX_FILTER_SCAN = 2000;

/** @type {Record<string, string>} */
const ACTION_LABELS = {
  pause: "paused", unpause: "resumed", block: "blocked", unblock: "unblocked", retry: "retried", cancel: "cancelled",
  redrive: "started redrive", stop_redrive: "stopped redrive", adopt: "adopted", run: "ran", add: "added", change: "changed",
  suspend: "suspended", resume: "resumed", remove: "removed", stop: "stopped", start: "started", set: "set",
};

/** @param {{query: Record<string, string>}} props */
export default function Audit({ query }) {
  const deeds = usePages({
    read: async (before, signal) => {
      const page = await api.get("/api/v1/audit", { query: { before, limit: 200 }, signal });
      return { eventId: page.eventId, rows: /** @type {AuditEntry[]} */ (page.deeds), next: page.next };
    },
    id: (deed) => deed.number,
    filter: { types: ["OrderEvent", "JobChainEvent", "FileBasedEvent"] },
    every: 3000,
  }, []);
  const all = deeds.data ?? [];
  const rows = useMemo(() => all.filter(buildFilter(query)), [deeds.data, query.by, query.action, query.what]);
  const filtered = Boolean(query.by || query.action || query.what);
  // A filter that finds little looks further back, up to a bound.
  const few = filtered && rows.length < 50 && all.length < MAX_FILTER_SCAN;
  useEffect(() => {
    if (few) deeds.more?.();
  }, [few, all.length, deeds.more === null]);
  return html`
    <${ScreenHeader} title="Audit" sub=${deeds.data && html`<span>${filtered ? `${formatCount(rows.length)} of the newest ${formatCount(all.length)}` : `the newest ${formatCount(all.length)}`}${deeds.more ? "" : ", all entries"}</span>`}>
      <${CopyAsMenu} call=${{ path: "/api/v1/audit", query: { limit: 100 } }} cli=${cliCommand("audit", "--limit", "100")} />
    <//>
    <${FilterBar} query=${query} fields=${[
      { name: "by", label: "Who", hint: "a token's name", suggestions: distinctValues(all, "by"), width: 150 },
      { name: "action", label: "Action", choices: distinctValues(all, "action").map((action) => /** @type {[string, string]} */ ([action, ACTION_LABELS[action] ?? action])) },
      { name: "what", label: "Target or reason", hint: "part of it", width: 220 },
    ]} />
    <${LiveView} of=${deeds} lines=${12} what="The audit could not be loaded">${() => html`
      <${Table} tall label="Audit entries, newest first" columns=${COLUMNS} rows=${rows} id=${(/** @type {AuditEntry} */ deed) => String(deed.number)}
        onEnd=${deeds.more ?? undefined} empty=${html`<${EmptyAudit} filtered=${filtered} more=${deeds.more} />`} />`}<//>`;
}

/** @param {Record<string, string>} query
 * @returns {(deed: AuditEntry) => boolean} */
function buildFilter({ by = "", action = "", what = "" }) {
  const [who, part] = [by.toLowerCase(), what.toLowerCase()];
  return (deed) => deed.by.toLowerCase().includes(who) && (!action || deed.action === action)
    && (!part || `${deed.what} ${deed.detail}`.toLowerCase().includes(part));
}

/** @param {AuditEntry[]} deeds @param {"by" | "action"} name */
function distinctValues(deeds, name) {
  return [...new Set(deeds.map((deed) => deed[name]))].sort();
}

/** @param {{filtered: boolean, more: (() => void) | null}} props */
function EmptyAudit({ filtered, more }) {
  if (!filtered) return html`<${EmptyState} title="No audit entries yet" icon="audit"><p>Pauses, retries, added orders and other changes appear here with the name of the token.</p><//>`;
  return html`<${EmptyState} title="No entry matches" icon="filter">
    ${more ? html`<p>Older entries were not searched yet.</p><${Button} onClick=${more}>Search older entries<//>` : html`<p>Clear a filter to see more.</p>`}<//>`;
}

/** @type {import("../../parts/table.js").Column<AuditEntry>[]} */
const COLUMNS = [
  { name: "time", title: "Time", width: 156, cell: (deed) => html`<${TimeOfDay} at=${deed.time} fine=${false} />` },
  { name: "ago", title: "Ago", width: 78, narrow: true, cell: (deed) => html`<span class="soft"><${Ago} at=${deed.time} /></span>` },
  { name: "by", title: "Who", grow: 32, narrow: true, cell: (deed) => html`<b title=${deed.by}>${deed.by}</b>` },
  { name: "action", title: "Action", width: 112, narrow: true, cell: (deed) => html`<span title=${deed.action}>${ACTION_LABELS[deed.action] ?? deed.action}</span>` },
  { name: "what", title: "Target", grow: 36, narrow: true, cell: (deed) => html`<${AuditTarget} what=${deed.what} />` },
  { name: "detail", title: "Reason or details", grow: 40, cell: (deed) => html`<span class="soft" title=${deed.detail}>${deed.detail}</span>` },
  { name: "number", title: "No.", width: 66, right: true, cell: (deed) => html`<span class="faint">${deed.number}</span>` },
];
