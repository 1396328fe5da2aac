// Failed tasks, grouped by handler and error.

import { formatCount, pluralize } from "../../data/numbers.js";
import { boundTenant } from "../../data/session.js";
import { taskFilterFromQuery } from "../../data/tasks.js";
import { Badge } from "../../parts/badge.js";
import { Button } from "../../parts/button.js";
import { cliCommand, CopyAsMenu } from "../../parts/copy.js";
import { ScreenHeader } from "../../parts/panel.js";
import { FilterBar } from "../../parts/filters.js";
import { BulkJobsProgress } from "../../parts/bulk.js";
import { RedriveDialog } from "../../parts/redrive-dialog.js";
import { RedriveProgress } from "../../parts/redrive-progress.js";
import { Sparkline } from "../../parts/sparkline.js";
import { EmptyState, LiveView } from "../../parts/states.js";
import { Table } from "../../parts/table.js";
import { RelativeTime, TimeWithDayUnlessToday } from "../../parts/time.js";
import { html, useMemo, useState } from "../../parts/ui.js";
import { setQuery } from "../../shell/router.js";
import { FailureGroupDetail } from "./detail.js";
import { groupFailures, countFailuresPerInterval } from "./groups.js";
import { MAX_PAGE_COUNT, INITIAL_PAGE_COUNT, useFailures } from "./failures.js";

/** @typedef {import("./groups.js").FailureGroup} FailureGroup */
/** @typedef {import("./failures.js").LoadedFailures} LoadedFailures */
/** @typedef {import("../../data/redrives.js").RedriveScope} RedriveScope */

/** @param {{query: Record<string, string>}} props */
export default function Failures({ query }) {
  const { status: _, key: __, event: ___, source: ____, ...filter } = taskFilterFromQuery(query);
  const pageCount = Math.min(MAX_PAGE_COUNT, Math.max(INITIAL_PAGE_COUNT, Number(query.pages) || INITIAL_PAGE_COUNT));
  const live = useFailures(filter, pageCount);
  const groups = useMemo(() => groupFailures(live.data?.failures.values() ?? []), [live.data]);
  const [openScope, setOpenScope] = useState(/** @type {RedriveScope | null} */ (null));
  const openGroup = groups.find((group) => group.id === query.open) ?? null;
  const filterFields = [
    { name: "handler", label: "Handler", width: 150, suggestions: [...new Set(groups.map((group) => group.handler))] },
    { name: "collection", label: "Type", hint: "or a collection", width: 150 },
    ...(boundTenant.value === null ? [{ name: "tenant", label: "Tenant", hint: "default", width: 110 }] : []),
    { name: "start", label: "Created since", time: true, advanced: true },
    { name: "end", label: "Created before", time: true, advanced: true },
  ];
  return html`<div class="failures">
    <${ScreenHeader} title="Failures" subtitle=${live.data && html`<${FailureCount} loaded=${live.data} groups=${groups} pages=${pageCount} />`}>
      <${Button} icon="retry" role="operator" onClick=${() => setOpenScope({ status: "FAILED", ...filter })}>Redrive all…<//>
      <${CopyAsMenu} call=${{ path: "/api/v1/tasks", query: { ...filter, status: "FAILED" } }} cli=${cliCommand("tasks", "list", "--status", "FAILED", ...Object.entries(filter).flatMap(([name, value]) => [`--${name}`, value]))} />
    <//>
    <${FilterBar} query=${query} fields=${filterFields} />
    <${RedriveProgress} />
    <${BulkJobsProgress} />
    <${LiveView} live=${live} lines=${10} errorTitle="The failures could not be loaded">${(/** @type {LoadedFailures} */ data) => html`
      <div class=${openGroup ? "failures-columns" : "failures-columns alone"}>
        <${Table} fill label="Failures by handler and error" columns=${groupColumns(groups, openGroup !== null)} rows=${groups} id=${(/** @type {FailureGroup} */ group) => group.id}
          onOpen=${(/** @type {FailureGroup} */ group) => setQuery({ open: group.id })} rowClass=${(/** @type {FailureGroup} */ group) => group === openGroup && "selected"}
          empty=${html`<${NoFailures} data=${data} filtered=${Object.keys(filter).length > 0} />`} />
        ${openGroup && html`<${FailureGroupDetail} key=${openGroup.id} group=${openGroup} groups=${groups} data=${data} filter=${filter} onRedrive=${setOpenScope}
          onClose=${() => setQuery({ open: null })} />`}
      </div>`}<//>
    ${openScope && html`<${RedriveDialog} scope=${openScope} onClose=${() => setOpenScope(null)} />`}
  </div>`;
}

/** How many failures were read, and from when.
 * @param {{loaded: LoadedFailures, groups: FailureGroup[], pages: number}} props */
function FailureCount({ loaded: { failures, hasMore, oldestCreatedAt }, groups, pages }) {
  const countText = `${pluralize(failures.size, "failed task")} in ${pluralize(groups.length, "group")}`;
  if (!hasMore) return html`<span>${countText}</span>`;
  return html`<span>${countText}, created since <${TimeWithDayUnlessToday} at=${oldestCreatedAt} withMillis=${false} />. There are older ones.</span>
    ${pages < MAX_PAGE_COUNT
      ? html`<${Button} small onClick=${() => setQuery({ pages: Math.min(MAX_PAGE_COUNT, pages + INITIAL_PAGE_COUNT) })}>Search older tasks<//>`
      : html`<span>Narrow the filter to see them.</span>`}`;
}

/** @param {{data: LoadedFailures, filtered: boolean}} props */
function NoFailures({ data, filtered }) {
  if (data.hasMore) return html`<${EmptyState} title="No matches so far" icon="filter"><p>There are older tasks that were not searched yet. Search them, or narrow the filter.</p><//>`;
  return html`<${EmptyState} title=${filtered ? "No failure matches" : "No failures"} icon="task">
    <p>${filtered ? "Clear a filter to see more." : "Tasks that used all their retries appear here, grouped by handler and error."}</p><//>`;
}

/** @param {FailureGroup[]} groups @param {boolean} isDetailOpen whether a group is open beside the table, which then has less space
 * @returns {import("../../parts/table.js").Column<FailureGroup>[]} */
function groupColumns(groups, isDetailOpen) {
  const from = Math.min(...groups.map((group) => group.oldest));
  const to = Math.max(...groups.map((group) => group.newest));
  return [
    { name: "count", title: "Tasks", width: 64, alignRight: true, onSmallScreens: true, cell: (group) => html`<b>${formatCount(group.failures.length)}</b>` },
    { name: "handler", title: "Handler", grow: 18, onSmallScreens: true, cell: (group) => html`<span title=${group.handler}>${group.handler}</span>` },
    { name: "error", title: "Error", grow: 46, onSmallScreens: true, cell: errorCell },
    { name: "objects", title: "Objects", width: 70, alignRight: true, hidden: isDetailOpen, cell: (group) => formatCount(group.objects) },
    { name: "trend", title: "Over time", width: 118, hidden: isDetailOpen, cell: (group) => html`<${FailureSparkline} values=${countFailuresPerInterval(group, from, to)} />` },
    { name: "newest", title: "Latest", width: 98, cell: (group) => html`<${RelativeTime} at=${group.newest} />` },
    { name: "oldest", title: "First", width: 98, hidden: isDetailOpen, cell: (group) => html`<${RelativeTime} at=${group.oldest} />` },
  ];
}

/** @param {{values: number[]}} props */
function FailureSparkline({ values }) {
  return html`<${Sparkline} values=${values} height=${18} maxValue=${Math.max(...values) * 1.3} label="Failures over time" />`;
}

/** @param {FailureGroup} group */
function errorCell({ kind, error }) {
  if (kind === "missing") return html`<${Badge} tone="warn">Handler is no longer defined<//>`;
  return html`<span class="bad-text" title=${error}>${error || "No error message"}</span>`;
}
