// The audit: who changed what, when and why.

import { api } from "../../data/api.js";
import { usePages } from "../../data/pages.js";
import { count } from "../../data/numbers.js";
import { Button } from "../../parts/button.js";
import { cli, CopyAs } from "../../parts/copy.js";
import { Head } from "../../parts/facts.js";
import { Filters } from "../../parts/filters.js";
import { Empty, Shown } from "../../parts/states.js";
import { Table } from "../../parts/table.js";
import { Ago, Clock } from "../../parts/time.js";
import { html, useEffect, useMemo } from "../../parts/ui.js";
import { What } from "./what.js";

/** @typedef {import("../../data/bodies.js").Deed} Deed */

/** How far back a filter looks by itself. */
const LOOK = 2000;

/** @type {Record<string, string>} */
const DONE = {
  pause: "paused", unpause: "resumed", block: "blocked", unblock: "unblocked", retry: "retried", cancel: "cancelled",
  redrive: "started redrive", stop_redrive: "stopped redrive", adopt: "adopted", run: "ran", add: "added", change: "changed",
  suspend: "suspended", resume: "resumed", remove: "removed", stop: "stopped", start: "started", set: "set",
};

/** @param {{query: Record<string, string>}} props */
export default function Audit({ query }) {
  const deeds = usePages({
    read: async (before, signal) => {
      const page = await api.get("/api/v1/audit", { query: { before, limit: 200 }, signal });
      return { eventId: page.eventId, rows: /** @type {Deed[]} */ (page.deeds), next: page.next };
    },
    id: (deed) => deed.number,
    filter: { types: ["OrderEvent", "JobChainEvent", "FileBasedEvent"] },
    every: 3000,
  }, []);
  const all = deeds.data ?? [];
  const rows = useMemo(() => all.filter(wanted(query)), [deeds.data, query.by, query.action, query.what]);
  const filtered = Boolean(query.by || query.action || query.what);
  // A filter that finds little looks further back, up to a bound.
  const few = filtered && rows.length < 50 && all.length < LOOK;
  useEffect(() => {
    if (few) deeds.more?.();
  }, [few, all.length, deeds.more === null]);
  return html`
    <${Head} title="Audit" sub=${deeds.data && html`<span>${filtered ? `${count(rows.length)} of the newest ${count(all.length)}` : `the newest ${count(all.length)}`}${deeds.more ? "" : ", all entries"}</span>`}>
      <${CopyAs} call=${{ path: "/api/v1/audit", query: { limit: 100 } }} cli=${cli("audit", "--limit", "100")} />
    <//>
    <${Filters} query=${query} fields=${[
      { name: "by", label: "Who", hint: "a token's name", suggestions: names(all, "by"), width: 150 },
      { name: "action", label: "Action", choices: names(all, "action").map((action) => /** @type {[string, string]} */ ([action, DONE[action] ?? action])) },
      { name: "what", label: "Target or reason", hint: "part of it", width: 220 },
    ]} />
    <${Shown} of=${deeds} lines=${12} what="The audit could not be loaded">${() => html`
      <${Table} tall label="Audit entries, newest first" columns=${COLUMNS} rows=${rows} id=${(/** @type {Deed} */ deed) => String(deed.number)}
        onEnd=${deeds.more ?? undefined} empty=${html`<${Nothing} filtered=${filtered} more=${deeds.more} />`} />`}<//>`;
}

/** @param {Record<string, string>} query
 * @returns {(deed: Deed) => boolean} */
function wanted({ by = "", action = "", what = "" }) {
  const [who, part] = [by.toLowerCase(), what.toLowerCase()];
  return (deed) => deed.by.toLowerCase().includes(who) && (!action || deed.action === action)
    && (!part || `${deed.what} ${deed.detail}`.toLowerCase().includes(part));
}

/** @param {Deed[]} deeds @param {"by" | "action"} name */
function names(deeds, name) {
  return [...new Set(deeds.map((deed) => deed[name]))].sort();
}

/** @param {{filtered: boolean, more: (() => void) | null}} props */
function Nothing({ filtered, more }) {
  if (!filtered) return html`<${Empty} title="No audit entries yet" icon="audit"><p>Pauses, retries, added orders and other changes appear here with the name of the token.</p><//>`;
  return html`<${Empty} title="No entry matches" icon="filter">
    ${more ? html`<p>Older entries were not searched yet.</p><${Button} onClick=${more}>Search older entries<//>` : html`<p>Clear a filter to see more.</p>`}<//>`;
}

/** @type {import("../../parts/table.js").Column<Deed>[]} */
const COLUMNS = [
  { name: "time", title: "Time", width: 156, cell: (deed) => html`<${Clock} at=${deed.time} fine=${false} />` },
  { name: "ago", title: "Ago", width: 78, narrow: true, cell: (deed) => html`<span class="soft"><${Ago} at=${deed.time} /></span>` },
  { name: "by", title: "Who", grow: 32, narrow: true, cell: (deed) => html`<b title=${deed.by}>${deed.by}</b>` },
  { name: "action", title: "Action", width: 112, narrow: true, cell: (deed) => html`<span title=${deed.action}>${DONE[deed.action] ?? deed.action}</span>` },
  { name: "what", title: "Target", grow: 36, narrow: true, cell: (deed) => html`<${What} what=${deed.what} />` },
  { name: "detail", title: "Reason or details", grow: 40, cell: (deed) => html`<span class="soft" title=${deed.detail}>${deed.detail}</span>` },
  { name: "number", title: "No.", width: 66, right: true, cell: (deed) => html`<span class="faint">${deed.number}</span>` },
];
