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
  pause: "paused", unpause: "let go on", block: "blocked", unblock: "unblocked", retry: "retried", cancel: "cancelled",
  redrive: "redrove", stop_redrive: "stopped redriving", adopt: "adopted", run: "ran", add: "added", change: "changed",
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
    <${Head} title="Audit" sub=${deeds.data && html`<span>${filtered ? `${count(rows.length)} of the newest ${count(all.length)}` : `the newest ${count(all.length)}`}${deeds.more ? "" : ", all there are"}</span>`}>
      <${CopyAs} call=${{ path: "/api/v1/audit", query: { limit: 100 } }} cli=${cli("audit", "--limit", "100")} />
    <//>
    <${Filters} query=${query} fields=${[
      { name: "by", label: "Who", hint: "a token's name", suggestions: names(all, "by"), width: 150 },
      { name: "action", label: "Did", choices: names(all, "action").map((action) => /** @type {[string, string]} */ ([action, DONE[action] ?? action])) },
      { name: "what", label: "What or why", hint: "part of it", width: 220 },
    ]} />
    <${Shown} of=${deeds} lines=${12} what="The audit could not be read">${() => html`
      <${Table} tall label="What people did, the newest first" columns=${COLUMNS} rows=${rows} id=${(/** @type {Deed} */ deed) => String(deed.number)}
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
  if (!filtered) return html`<${Empty} title="Nobody has changed anything yet" icon="audit"><p>Whoever pauses, retries, adds or removes something appears here, with their token's name.</p><//>`;
  return html`<${Empty} title="Nothing like that was done" icon="filter">
    ${more ? html`<p>As far as was looked.</p><${Button} onClick=${more}>Look further back<//>` : html`<p>Clear a filter to see the rest.</p>`}<//>`;
}

/** @type {import("../../parts/table.js").Column<Deed>[]} */
const COLUMNS = [
  { name: "time", title: "Time", width: 156, cell: (deed) => html`<${Clock} at=${deed.time} fine=${false} />` },
  { name: "ago", title: "Ago", width: 78, narrow: true, cell: (deed) => html`<span class="soft"><${Ago} at=${deed.time} /></span>` },
  { name: "by", title: "Who", grow: 32, narrow: true, cell: (deed) => html`<b title=${deed.by}>${deed.by}</b>` },
  { name: "action", title: "Did", width: 88, narrow: true, cell: (deed) => html`<span title=${deed.action}>${DONE[deed.action] ?? deed.action}</span>` },
  { name: "what", title: "What", grow: 36, narrow: true, cell: (deed) => html`<${What} what=${deed.what} />` },
  { name: "detail", title: "Why, or how much", grow: 40, cell: (deed) => html`<span class="soft" title=${deed.detail}>${deed.detail}</span>` },
  { name: "number", title: "No.", width: 66, right: true, cell: (deed) => html`<span class="faint">${deed.number}</span>` },
];
