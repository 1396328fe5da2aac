// The task list with its filter and bulk actions.

import { api } from "../../data/api.js";
import { useLiveData } from "../../data/live-data.js";
import { formatCount } from "../../data/numbers.js";
import { redriveScopeFromFilter } from "../../data/redrives.js";
import { boundTenant, hasRole } from "../../data/session.js";
import { TASK_FILTER_FIELDS, taskFilterFromQuery } from "../../data/tasks.js";
import { TASK_STATUS_CHOICES } from "../../parts/badge.js";
import { Button } from "../../parts/button.js";
import { cliCommand, CopyAsMenu } from "../../parts/copy.js";
import { ScreenHeader } from "../../parts/panel.js";
import { FilterBar } from "../../parts/filters.js";
import { BulkJobsProgress } from "../../parts/bulk.js";
import { RedriveDialog } from "../../parts/redrive-dialog.js";
import { RedriveProgress } from "../../parts/redrive-progress.js";
import { EmptyState, ErrorState, LoadingState, Notice } from "../../parts/states.js";
import { errorText } from "../../data/problem.js";
import { Table } from "../../parts/table.js";
import { html, useEffect, useMemo, useRef, useState } from "../../parts/ui.js";
import { useScreenCommands } from "../../shell/commands.js";
import { navigate, screenPaths } from "../../shell/router.js";
import { SelectionBar } from "./selection.js";
import { taskColumns } from "./columns.js";
import { MAX_ROWS, useTaskList } from "./list.js";

/** @typedef {import("../../data/api-types.js").Task} Task */
/** @typedef {import("../../data/tasks.js").TaskFilter} TaskFilter */

/** Additional states beside the five statuses. @type {[string, string][]} */
const EXTRA_TASK_STATE_CHOICES = [["error", "Failed or cancelled"], ["missing", "Missing"]];

/** @param {{query: Record<string, string>}} props */
export default function Tasks({ query }) {
  const filter = taskFilterFromQuery(query);
  const filterKey = JSON.stringify(filter);
  const list = useTaskList(filter);
  const [selection, setSelection] = useState({ selected: /** @type {Set<string>} */ (new Set()), allMatching: false });
  const [isRedriveOpen, setRedriveOpen] = useState(false);
  const container = useRef(/** @type {HTMLDivElement | null} */ (null));
  useEffect(() => setSelection({ selected: new Set(), allMatching: false }), [filterKey]);
  const { rows, next } = list;
  const selectedIds = useMemo(() => (selection.allMatching ? new Set(rows.map((task) => task.id)) : selection.selected), [selection, rows]);
  const visibleColumns = useMemo(() => taskColumns(filter), [filterKey, boundTenant.value]);
  const redriveScope = redriveScopeFromFilter(filter) ?? redriveScopeFromFilter({ ...filter, status: "FAILED", event: undefined });
  useScreenCommands(hasRole("operator") && !filter.event ? [{ title: "Redrive failed tasks", keywords: "retry run again", run: () => setRedriveOpen(true) }] : []);

  const scrollToTop = () => {
    const box = container.current?.querySelector(".table-box");
    if (box) box.scrollTop = 0;
  };
  return html`<div class="tasks" ref=${container}>
    <${ScreenHeader} title="Tasks" subtitle=${html`<${TaskCount} list=${list} />`}>
      <${Button} icon="retry" role="operator" disabled=${Boolean(filter.event)} onClick=${() => setRedriveOpen(true)}
        title=${filter.event ? "A redrive cannot be limited to one event: select the tasks instead" : "Run matching failed tasks again"}>Redrive…<//>
      <${CopyAsMenu} call=${{ path: "/api/v1/tasks", query: filter }} cli=${cliCommand("tasks", "list", ...TASK_FILTER_FIELDS.flatMap((name) => (filter[name] ? [`--${name}`, filter[name]] : [])))} />
    <//>
    <${FilterBar} query=${query} fields=${useFilterFields(filter)} />
    <${RedriveProgress} />
    <${BulkJobsProgress} />
    <${SelectionBar} rows=${rows} filter=${filter} selection=${selection} hasMore=${next !== null} onChange=${setSelection} onRedrive=${() => setRedriveOpen(true)} />
    ${list.newerCount > 0 && html`<${Notice}><span>${formatCount(list.newerCount)} newer</span><${Button} small icon="up" onClick=${scrollToTop}>Show them<//><//>`}
    ${list.error && rows.length > 0 && html`<${Notice} tone="warn"><span>The next page could not be loaded: ${errorText(list.error)}</span><${Button} small onClick=${list.loadMore}>Try again<//><//>`}
    ${list.error && rows.length === 0
      ? html`<${ErrorState} error=${list.error} onRetry=${list.reload} errorTitle="The tasks could not be loaded" />`
      : list.loading ? html`<${LoadingState} lines=${12} />`
      : html`<${Table} fill label="Tasks, newest first" columns=${visibleColumns} rows=${rows} id=${(/** @type {Task} */ task) => task.id}
          onOpen=${(/** @type {Task} */ task) => navigate(screenPaths.task(task.id))} onEnd=${list.loadMore} onScroll=${list.setFirstVisible}
          selection=${{ selected: selectedIds, onChange: (/** @type {Set<string>} */ next) => setSelection({ selected: next, allMatching: false }) }}
          empty=${html`<${NoTasks} filter=${filter} hasOlder=${next !== null} onSearchOlder=${list.loadMore} />`} />`}
    ${rows.length >= MAX_ROWS && next !== null && html`<${Notice}>There are more than ${formatCount(MAX_ROWS)} tasks. Narrow the filter to see the rest.<//>`}
    ${isRedriveOpen && redriveScope && html`<${RedriveDialog} scope=${redriveScope} onClose=${() => setRedriveOpen(false)} />`}
  </div>`;
}

/** @param {{list: import("./list.js").TaskListState}} props */
function TaskCount({ list }) {
  if (list.loading) return html`<span>Loading</span>`;
  const rowCount = formatCount(list.rows.length);
  return html`<span>${list.next === null ? `${rowCount} match` : `${rowCount} loaded, more below`}</span>
    ${list.reading && html`<span role="status">Loading more</span>`}`;
}

/** @param {TaskFilter} filter */
function useFilterFields(filter) {
  const live = useLiveData({
    read: (signal) => /** @type {Promise<{handlers: {name: string}[]}>} */ (api.get("/api/v1/handlers", { signal })),
  }, []);
  const names = live.data?.handlers.map((handler) => handler.name) ?? [];
  return [
    { name: "status", label: "Status", choices: [...TASK_STATUS_CHOICES, ...EXTRA_TASK_STATE_CHOICES], width: 150 },
    // Both mean the same; an address may have either.
    filter.source && !filter.handler
      ? { name: "source", label: "Source", suggestions: names, width: 150 }
      : { name: "handler", label: "Handler", hint: "or a source", suggestions: names, width: 150 },
    { name: "collection", label: "Type", hint: "or a collection", width: 150 },
    { name: "key", label: "Object", hint: "record:1", width: 170 },
    ...(boundTenant.value === null ? [{ name: "tenant", label: "Tenant", hint: "default", width: 110 }] : []),
    { name: "event", label: "Event", hint: "its id", width: 150, advanced: true },
    { name: "start", label: "Created since", time: true, advanced: true },
    { name: "end", label: "Created before", time: true, advanced: true },
  ];
}

/** @param {{filter: TaskFilter, hasOlder: boolean, onSearchOlder: () => void}} props */
function NoTasks({ filter, hasOlder, onSearchOlder }) {
  if (hasOlder) {
    return html`<${EmptyState} title="No matches so far" icon="filter"><p>There are older tasks that were not searched yet.</p>
      <${Button} onClick=${onSearchOlder}>Search older tasks<//><//>`;
  }
  if (Object.keys(filter).length > 0) {
    return html`<${EmptyState} title="No task matches" icon="filter"><p>Clear a filter, or wait: matching tasks appear here.</p><//>`;
  }
  return html`<${EmptyState} title="There are no tasks yet" icon="task">
    <p>Emit an event that a handler is routed to, or run a source: <code>${cliCommand("run", "SOURCE/COLLECTION")}</code></p><//>`;
}
