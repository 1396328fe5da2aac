// The tasks that match a filter, and what is done to many of them.

import { api } from "../../data/api.js";
import { useLiveData } from "../../data/live-data.js";
import { formatCount } from "../../data/numbers.js";
import { redriveScope } from "../../data/redrives.js";
import { boundTenant, hasRole } from "../../data/session.js";
import { TASK_FILTER_FIELDS, taskFilterFromQuery } from "../../data/tasks.js";
import { STATUS_CHOICES } from "../../parts/badge.js";
import { Button } from "../../parts/button.js";
import { cliCommand, CopyAsMenu } from "../../parts/copy.js";
import { ScreenHeader } from "../../parts/panel.js";
import { FilterBar } from "../../parts/filters.js";
import { BulkProgress } from "../../parts/bulk.js";
import { RedriveDialog } from "../../parts/redrive-dialog.js";
import { RedriveProgress } from "../../parts/redrive-progress.js";
import { EmptyState, ErrorState, LoadingState, Notice } from "../../parts/states.js";
import { errorText } from "../../data/problem.js";
import { Table } from "../../parts/table.js";
import { html, useEffect, useMemo, useRef, useState } from "../../parts/ui.js";
import { useCommands } from "../../shell/commands.js";
import { navigate, screenPaths } from "../../shell/router.js";
import { SelectionBar } from "./selection.js";
import { taskColumns } from "./columns.js";
import { MAX_ROWS, useTaskList } from "./list.js";

/** @typedef {import("../../data/api-types.js").Task} Task */
/** @typedef {import("../../data/tasks.js").TaskFilter} TaskFilter */

/** States that say more than the five words of the API. @type {[string, string][]} */
const STATE_CHOICES = [["error", "Failed or cancelled"], ["missing", "Missing"]];

/** @param {{query: Record<string, string>}} props */
export default function Tasks({ query }) {
  const wanted = taskFilterFromQuery(query);
  const same = JSON.stringify(wanted);
  const list = useTaskList(wanted);
  const [selection, setSelection] = useState({ chosen: /** @type {Set<string>} */ (new Set()), all: false });
  const [asking, setAsking] = useState(false);
  const place = useRef(/** @type {HTMLDivElement | null} */ (null));
  useEffect(() => setSelection({ chosen: new Set(), all: false }), [same]);
  const { rows, next } = list;
  const chosen = useMemo(() => (selection.all ? new Set(rows.map((task) => task.id)) : selection.chosen), [selection, rows]);
  const shown = useMemo(() => taskColumns(wanted), [same, boundTenant.value]);
  const scope = redriveScope(wanted) ?? redriveScope({ ...wanted, status: "FAILED", event: undefined });
  useCommands(hasRole("operator") && !wanted.event ? [{ title: "Redrive failed tasks", words: "retry run again", run: () => setAsking(true) }] : []);

  const toTop = () => {
    const box = place.current?.querySelector(".table-box");
    if (box) box.scrollTop = 0;
  };
  return html`<div class="tasks" ref=${place}>
    <${ScreenHeader} title="Tasks" sub=${html`<${TaskCount} list=${list} />`}>
      <${Button} icon="retry" role="operator" disabled=${Boolean(wanted.event)} onClick=${() => setAsking(true)}
        title=${wanted.event ? "A redrive cannot be limited to one event: select the tasks instead" : "Run matching failed tasks again"}>Redrive…<//>
      <${CopyAsMenu} call=${{ path: "/api/v1/tasks", query: wanted }} cli=${cliCommand("tasks", "list", ...TASK_FILTER_FIELDS.flatMap((name) => (wanted[name] ? [`--${name}`, wanted[name]] : [])))} />
    <//>
    <${FilterBar} query=${query} fields=${useFilterFields(wanted)} />
    <${RedriveProgress} />
    <${BulkProgress} />
    <${SelectionBar} rows=${rows} wanted=${wanted} selection=${selection} more=${next !== null} onChange=${setSelection} onRedrive=${() => setAsking(true)} />
    ${list.newer > 0 && html`<${Notice}><span>${formatCount(list.newer)} newer</span><${Button} small icon="up" onClick=${toTop}>Show them<//><//>`}
    ${list.error && rows.length > 0 && html`<${Notice} tone="warn"><span>The next page could not be loaded: ${errorText(list.error)}</span><${Button} small onClick=${list.more}>Try again<//><//>`}
    ${list.error && rows.length === 0
      ? html`<${ErrorState} error=${list.error} onRetry=${list.reload} what="The tasks could not be loaded" />`
      : list.loading ? html`<${LoadingState} lines=${12} />`
      : html`<${Table} tall label="Tasks, newest first" columns=${shown} rows=${rows} id=${(/** @type {Task} */ task) => task.id}
          onOpen=${(/** @type {Task} */ task) => navigate(screenPaths.task(task.id))} onEnd=${list.more} onScroll=${list.seen}
          choice=${{ chosen, onChange: (/** @type {Set<string>} */ next) => setSelection({ chosen: next, all: false }) }}
          empty=${html`<${NoTasks} wanted=${wanted} further=${next !== null} onFurther=${list.more} />`} />`}
    ${rows.length >= MAX_ROWS && next !== null && html`<${Notice}>There are more than ${formatCount(MAX_ROWS)} tasks. Narrow the filter to see the rest.<//>`}
    ${asking && scope && html`<${RedriveDialog} scope=${scope} onClose=${() => setAsking(false)} />`}
  </div>`;
}

/** @param {{list: import("./list.js").TaskListState}} props */
function TaskCount({ list }) {
  if (list.loading) return html`<span>Loading</span>`;
  const there = formatCount(list.rows.length);
  return html`<span>${list.next === null ? `${there} match` : `${there} loaded, more below`}</span>
    ${list.reading && html`<span role="status">Loading more</span>`}`;
}

/** @param {TaskFilter} wanted */
function useFilterFields(wanted) {
  const known = useLiveData({
    read: (signal) => /** @type {Promise<{handlers: {name: string}[]}>} */ (api.get("/api/v1/handlers", { signal })),
  }, []);
  const names = known.data?.handlers.map((handler) => handler.name) ?? [];
  return [
    { name: "status", label: "Status", choices: [...STATUS_CHOICES, ...STATE_CHOICES], width: 150 },
    // The two mean the same; an address may have either.
    wanted.source && !wanted.handler
      ? { name: "source", label: "Source", suggestions: names, width: 150 }
      : { name: "handler", label: "Handler", hint: "or a source", suggestions: names, width: 150 },
    { name: "collection", label: "Type", hint: "or a collection", width: 150 },
    { name: "key", label: "Object", hint: "record:1", width: 170 },
    ...(boundTenant.value === null ? [{ name: "tenant", label: "Tenant", hint: "default", width: 110 }] : []),
    { name: "event", label: "Event", hint: "its id", width: 150, more: true },
    { name: "start", label: "Created since", time: true, more: true },
    { name: "end", label: "Created before", time: true, more: true },
  ];
}

/** @param {{wanted: TaskFilter, further: boolean, onFurther: () => void}} props */
function NoTasks({ wanted, further, onFurther }) {
  if (further) {
    return html`<${EmptyState} title="No matches so far" icon="filter"><p>There are older tasks that were not searched yet.</p>
      <${Button} onClick=${onFurther}>Search older tasks<//><//>`;
  }
  if (Object.keys(wanted).length > 0) {
    return html`<${EmptyState} title="No task matches" icon="filter"><p>Clear a filter, or wait: matching tasks appear here.</p><//>`;
  }
  return html`<${EmptyState} title="There are no tasks yet" icon="task">
    <p>Emit an event that a handler is routed to, or run a source: <code>${cliCommand("run", "SOURCE/COLLECTION")}</code></p><//>`;
}
