// Failures, put together by handler and error, and what can be done about each.

import { count, counted } from "../../data/numbers.js";
import { bound } from "../../data/session.js";
import { wantedOf } from "../../data/tasks.js";
import { Badge } from "../../parts/badge.js";
import { Button } from "../../parts/button.js";
import { cli, CopyAs } from "../../parts/copy.js";
import { Head } from "../../parts/facts.js";
import { Filters } from "../../parts/filters.js";
import { Works } from "../../parts/many.js";
import { RedriveDialog } from "../../parts/redrive.js";
import { Redrives } from "../../parts/redrives.js";
import { Sparkline } from "../../parts/sparkline.js";
import { Empty, Shown } from "../../parts/states.js";
import { Table } from "../../parts/table.js";
import { Ago, Clock } from "../../parts/time.js";
import { html, useMemo, useState } from "../../parts/ui.js";
import { setQuery } from "../../shell/router.js";
import { Detail } from "./detail.js";
import { groupsOf, histogram } from "./groups.js";
import { MOST_PAGES, PAGES, useFailures } from "./read.js";

/** @typedef {import("./groups.js").Group} Group */
/** @typedef {import("./read.js").Looked} Looked */
/** @typedef {import("../../data/redrives.js").Scope} Scope */

/** @param {{query: Record<string, string>}} props */
export default function Failures({ query }) {
  const { status: _, key: __, event: ___, source: ____, ...wanted } = wantedOf(query);
  const pages = Math.min(MOST_PAGES, Math.max(PAGES, Number(query.pages) || PAGES));
  const looked = useFailures(wanted, pages);
  const groups = useMemo(() => groupsOf(looked.data?.failures.values() ?? []), [looked.data]);
  const [redrive, setRedrive] = useState(/** @type {Scope | null} */ (null));
  const open = groups.find((group) => group.id === query.open) ?? null;
  const fields = [
    { name: "handler", label: "Handler", width: 150, suggestions: [...new Set(groups.map((group) => group.handler))] },
    { name: "collection", label: "Type", hint: "or a collection", width: 150 },
    ...(bound.value === null ? [{ name: "tenant", label: "Tenant", hint: "default", width: 110 }] : []),
    { name: "start", label: "Created since", time: true, more: true },
    { name: "end", label: "Created before", time: true, more: true },
  ];
  return html`<div class="failures">
    <${Head} title="Failures" sub=${looked.data && html`<${Reach} of=${looked.data} groups=${groups} pages=${pages} />`}>
      <${Button} icon="retry" role="operator" onClick=${() => setRedrive({ status: "FAILED", ...wanted })}>Redrive all…<//>
      <${CopyAs} call=${{ path: "/api/v1/tasks", query: { ...wanted, status: "FAILED" } }} cli=${cli("tasks", "list", "--status", "FAILED", ...Object.entries(wanted).flatMap(([name, value]) => [`--${name}`, value]))} />
    <//>
    <${Filters} query=${query} fields=${fields} />
    <${Redrives} />
    <${Works} />
    <${Shown} of=${looked} lines=${10} what="The failures could not be loaded">${(/** @type {Looked} */ data) => html`
      <div class=${open ? "failures-columns" : "failures-columns alone"}>
        <${Table} tall label="Failures by handler and error" columns=${columns(groups, open !== null)} rows=${groups} id=${(/** @type {Group} */ group) => group.id}
          onOpen=${(/** @type {Group} */ group) => setQuery({ open: group.id })} tone=${(/** @type {Group} */ group) => group === open && "chosen"}
          empty=${html`<${Nothing} data=${data} filtered=${Object.keys(wanted).length > 0} />`} />
        ${open && html`<${Detail} key=${open.id} group=${open} groups=${groups} data=${data} wanted=${wanted} onRedrive=${setRedrive}
          onClose=${() => setQuery({ open: null })} />`}
      </div>`}<//>
    ${redrive && html`<${RedriveDialog} scope=${redrive} onClose=${() => setRedrive(null)} />`}
  </div>`;
}

/** How far was looked, said plainly. @param {{of: Looked, groups: Group[], pages: number}} props */
function Reach({ of: { failures, more, until }, groups, pages }) {
  const what = `${counted(failures.size, "failed task")} in ${counted(groups.length, "group")}`;
  if (!more) return html`<span>${what}</span>`;
  return html`<span>${what}, created since <${Clock} at=${until} fine=${false} />. There are older ones.</span>
    ${pages < MOST_PAGES
      ? html`<${Button} small onClick=${() => setQuery({ pages: Math.min(MOST_PAGES, pages + PAGES) })}>Search older tasks<//>`
      : html`<span>Narrow the filter to see them.</span>`}`;
}

/** @param {{data: Looked, filtered: boolean}} props */
function Nothing({ data, filtered }) {
  if (data.more) return html`<${Empty} title="No matches so far" icon="filter"><p>There are older tasks that were not searched yet. Search them, or narrow the filter.</p><//>`;
  return html`<${Empty} title=${filtered ? "No failure matches" : "No failures"} icon="task">
    <p>${filtered ? "Clear a filter to see more." : "Tasks that used all their retries appear here, grouped by handler and error."}</p><//>`;
}

/** @param {Group[]} groups @param {boolean} beside one is open beside them, so that there is less room
 * @returns {import("../../parts/table.js").Column<Group>[]} */
function columns(groups, beside) {
  const from = Math.min(...groups.map((group) => group.oldest));
  const to = Math.max(...groups.map((group) => group.newest));
  return [
    { name: "count", title: "Tasks", width: 64, right: true, narrow: true, cell: (group) => html`<b>${count(group.failures.length)}</b>` },
    { name: "handler", title: "Handler", grow: 18, narrow: true, cell: (group) => html`<span title=${group.handler}>${group.handler}</span>` },
    { name: "error", title: "Error", grow: 46, narrow: true, cell: words },
    { name: "objects", title: "Objects", width: 70, right: true, hidden: beside, cell: (group) => count(group.objects) },
    { name: "when", title: "Over time", width: 118, hidden: beside, cell: (group) => html`<${Rate} values=${histogram(group, from, to)} />` },
    { name: "newest", title: "Latest", width: 98, cell: (group) => html`<${Ago} at=${group.newest} />` },
    { name: "oldest", title: "First", width: 98, hidden: beside, cell: (group) => html`<${Ago} at=${group.oldest} />` },
  ];
}

/** @param {{values: number[]}} props */
function Rate({ values }) {
  return html`<${Sparkline} values=${values} height=${18} most=${Math.max(...values) * 1.3} label="Failures over time" />`;
}

/** @param {Group} group */
function words({ kind, error }) {
  if (kind === "missing") return html`<${Badge} tone="warn">Handler is no longer defined<//>`;
  return html`<span class="bad-text" title=${error}>${error || "No error message"}</span>`;
}
