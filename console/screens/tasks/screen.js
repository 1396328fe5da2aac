// The tasks that match a filter, and what is done to many of them.

import { api } from "../../data/api.js";
import { useFollowed } from "../../data/follow.js";
import { count } from "../../data/numbers.js";
import { scopeOf } from "../../data/redrives.js";
import { bound, may } from "../../data/session.js";
import { NARROWING, wantedOf } from "../../data/tasks.js";
import { STATUSES } from "../../parts/badge.js";
import { Button } from "../../parts/button.js";
import { cli, CopyAs } from "../../parts/copy.js";
import { Head } from "../../parts/facts.js";
import { Filters } from "../../parts/filters.js";
import { Works } from "../../parts/many.js";
import { RedriveDialog } from "../../parts/redrive.js";
import { Redrives } from "../../parts/redrives.js";
import { Empty, Failed, Loading, Notice } from "../../parts/states.js";
import { said } from "../../data/problem.js";
import { Table } from "../../parts/table.js";
import { html, useEffect, useMemo, useRef, useState } from "../../parts/ui.js";
import { useCommands } from "../../shell/commands.js";
import { go, places } from "../../shell/router.js";
import { Chosen } from "./chosen.js";
import { columns } from "./columns.js";
import { MOST, useTasks } from "./list.js";

/** @typedef {import("../../data/bodies.js").Task} Task */
/** @typedef {import("../../data/tasks.js").Wanted} Wanted */

/** States that say more than the five words of the API. @type {[string, string][]} */
const STATES = [["error", "Failed or cancelled"], ["missing", "Missing"]];

/** @param {{query: Record<string, string>}} props */
export default function Tasks({ query }) {
  const wanted = wantedOf(query);
  const same = JSON.stringify(wanted);
  const list = useTasks(wanted);
  const [selection, setSelection] = useState({ chosen: /** @type {Set<string>} */ (new Set()), all: false });
  const [asking, setAsking] = useState(false);
  const place = useRef(/** @type {HTMLDivElement | null} */ (null));
  useEffect(() => setSelection({ chosen: new Set(), all: false }), [same]);
  const { rows, next } = list;
  const chosen = useMemo(() => (selection.all ? new Set(rows.map((task) => task.id)) : selection.chosen), [selection, rows]);
  const shown = useMemo(() => columns(wanted), [same, bound.value]);
  const scope = scopeOf(wanted) ?? scopeOf({ ...wanted, status: "FAILED", event: undefined });
  useCommands(may("operator") && !wanted.event ? [{ title: "Redrive failed tasks", words: "retry run again", run: () => setAsking(true) }] : []);

  const toTop = () => {
    const box = place.current?.querySelector(".table-box");
    if (box) box.scrollTop = 0;
  };
  return html`<div class="tasks" ref=${place}>
    <${Head} title="Tasks" sub=${html`<${Shown} list=${list} />`}>
      <${Button} icon="retry" role="operator" disabled=${Boolean(wanted.event)} onClick=${() => setAsking(true)}
        title=${wanted.event ? "A redrive cannot be limited to one event: select the tasks instead" : "Run matching failed tasks again"}>Redrive…<//>
      <${CopyAs} call=${{ path: "/api/v1/tasks", query: wanted }} cli=${cli("tasks", "list", ...NARROWING.flatMap((name) => (wanted[name] ? [`--${name}`, wanted[name]] : [])))} />
    <//>
    <${Filters} query=${query} fields=${useFields(wanted)} />
    <${Redrives} />
    <${Works} />
    <${Chosen} rows=${rows} wanted=${wanted} selection=${selection} more=${next !== null} onChange=${setSelection} onRedrive=${() => setAsking(true)} />
    ${list.newer > 0 && html`<${Notice}><span>${count(list.newer)} newer</span><${Button} small icon="up" onClick=${toTop}>Show them<//><//>`}
    ${list.error && rows.length > 0 && html`<${Notice} tone="warn"><span>The next page could not be loaded: ${said(list.error)}</span><${Button} small onClick=${list.more}>Try again<//><//>`}
    ${list.error && rows.length === 0
      ? html`<${Failed} error=${list.error} onRetry=${list.reload} what="The tasks could not be loaded" />`
      : list.loading ? html`<${Loading} lines=${12} />`
      : html`<${Table} tall label="Tasks, newest first" columns=${shown} rows=${rows} id=${(/** @type {Task} */ task) => task.id}
          onOpen=${(/** @type {Task} */ task) => go(places.task(task.id))} onEnd=${list.more} onScroll=${list.seen}
          choice=${{ chosen, onChange: (/** @type {Set<string>} */ next) => setSelection({ chosen: next, all: false }) }}
          empty=${html`<${Nothing} wanted=${wanted} further=${next !== null} onFurther=${list.more} />`} />`}
    ${rows.length >= MOST && next !== null && html`<${Notice}>There are more than ${count(MOST)} tasks. Narrow the filter to see the rest.<//>`}
    ${asking && scope && html`<${RedriveDialog} scope=${scope} onClose=${() => setAsking(false)} />`}
  </div>`;
}

/** @param {{list: import("./list.js").State}} props */
function Shown({ list }) {
  if (list.loading) return html`<span>Loading</span>`;
  const there = count(list.rows.length);
  return html`<span>${list.next === null ? `${there} match` : `${there} loaded, more below`}</span>
    ${list.reading && html`<span role="status">Loading more</span>`}`;
}

/** @param {Wanted} wanted */
function useFields(wanted) {
  const known = useFollowed({
    read: (signal) => /** @type {Promise<{handlers: {name: string}[]}>} */ (api.get("/api/v1/handlers", { signal })),
  }, []);
  const names = known.data?.handlers.map((handler) => handler.name) ?? [];
  return [
    { name: "status", label: "Status", choices: [...STATUSES, ...STATES], width: 150 },
    // The two mean the same; an address may have either.
    wanted.source && !wanted.handler
      ? { name: "source", label: "Source", suggestions: names, width: 150 }
      : { name: "handler", label: "Handler", hint: "or a source", suggestions: names, width: 150 },
    { name: "collection", label: "Type", hint: "or a collection", width: 150 },
    { name: "key", label: "Object", hint: "record:1", width: 170 },
    ...(bound.value === null ? [{ name: "tenant", label: "Tenant", hint: "default", width: 110 }] : []),
    { name: "event", label: "Event", hint: "its id", width: 150, more: true },
    { name: "start", label: "Created since", time: true, more: true },
    { name: "end", label: "Created before", time: true, more: true },
  ];
}

/** @param {{wanted: Wanted, further: boolean, onFurther: () => void}} props */
function Nothing({ wanted, further, onFurther }) {
  if (further) {
    return html`<${Empty} title="No matches so far" icon="filter"><p>There are older tasks that were not searched yet.</p>
      <${Button} onClick=${onFurther}>Search older tasks<//><//>`;
  }
  if (Object.keys(wanted).length > 0) {
    return html`<${Empty} title="No task matches" icon="filter"><p>Clear a filter, or wait: matching tasks appear here.</p><//>`;
  }
  return html`<${Empty} title="There are no tasks yet" icon="task">
    <p>Emit an event that a handler is routed to, or run a source: <code>${cli("run", "SOURCE/COLLECTION")}</code></p><//>`;
}
