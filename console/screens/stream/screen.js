// The stream: live events, newest first.

import { boundTenant } from "../../data/session.js";
import { streamConnectionState } from "../../data/stream.js";
import { formatCount } from "../../data/numbers.js";
import { Badge, TaskStatusBadge } from "../../parts/badge.js";
import { Button } from "../../parts/button.js";
import { cliCommand, CopyAsMenu } from "../../parts/copy.js";
import { ScreenHeader } from "../../parts/panel.js";
import { FilterBar } from "../../parts/filters.js";
import { EventLink, ObjectOrOrderLink, Link, TaskLink } from "../../parts/link.js";
import { EmptyState, ErrorState, LoadingState, Notice } from "../../parts/states.js";
import { Table } from "../../parts/table.js";
import { TimeWithDayUnlessToday } from "../../parts/time.js";
import { html, useMemo } from "../../parts/ui.js";
import { useScreenCommands } from "../../shell/commands.js";
import { useShortcuts } from "../../shell/shortcuts.js";
import { navigate, screenPaths, setQuery } from "../../shell/router.js";
import { INITIAL_EVENT_COUNT, useStreamTail } from "./tail.js";

/** @typedef {import("./rows.js").StreamRow} StreamRow */

/** Maximum older events that are loaded. */
const MAX_OLDER_EVENTS = 3200;

/** @param {{query: Record<string, string>}} props */
export default function Stream({ query }) {
  const paused = query.paused === "1";
  const showTaskChanges = query.tasks === "1";
  const olderEventCount = Math.min(MAX_OLDER_EVENTS, Math.max(INITIAL_EVENT_COUNT, Number(query.last) || INITIAL_EVENT_COUNT));
  const filter = {
    types: query.return ? query.return.split(",").map((type) => type.trim()).filter(Boolean) : undefined,
    key: query.key || undefined, path: query.path || undefined, tenant: query.tenant || undefined, tasks: showTaskChanges,
  };
  const tail = useStreamTail({ filter, olderEventCount, paused });
  // Newest first.
  const rows = useMemo(() => [...tail.rows].reverse(), [tail.rows]);
  const togglePause = () => setQuery({ paused: paused ? null : "1" });
  useShortcuts({ p: { title: paused ? "Resume" : "Pause", run: togglePause } });
  useScreenCommands([{ title: paused ? "Resume the stream" : "Pause the stream", keywords: "hold", run: togglePause }]);
  const call = { path: "/api/v1/stream", query: { return: query.return, key: query.key, path: query.path, tenant: query.tenant } };
  const command = cliCommand("watch", ...cliFlag("--return", query.return), ...cliFlag("--key", query.key), ...cliFlag("--path", query.path), ...cliFlag("--tenant", query.tenant));

  return html`
    <${ScreenHeader} title="Stream" subtitle=${rowCountText(tail, paused)}>
      <${Button} icon=${paused ? "play" : "pause"} pressed=${paused} onClick=${togglePause}>${paused ? "Resume" : "Pause"}<//>
      <${Button} pressed=${showTaskChanges} onClick=${() => setQuery({ tasks: showTaskChanges ? null : "1" })} title="Show status changes of tasks, too">Tasks<//>
      <${CopyAsMenu} call=${call} cli=${command} />
    <//>
    <${FilterBar} query=${query} fields=${filterFields()} />
    ${tail.torn && html`<${Notice} tone="warn"><span>Events are missing (torn stream): the journal deleted them before this page could read them. Later events are complete.</span>
      <${Button} small onClick=${tail.reload}>Reload<//><//>`}
    ${tail.error
      ? html`<${ErrorState} error=${tail.error} onRetry=${tail.reload} errorTitle="The journal could not be loaded" />`
      : tail.loading ? html`<${LoadingState} lines=${12} />`
      : html`<${Table} fill label="Events, newest first" columns=${COLUMNS} rows=${rows} id=${(/** @type {StreamRow} */ row) => row.id}
          onOpen=${openRow} rowClass=${(/** @type {StreamRow} */ row) => `row-${row.kind}`} empty=${html`<${NoEvents} searching=${tail.searching} filtered=${Object.keys(query).some((name) => ["return", "key", "path", "tenant"].includes(name))} />`} />`}
    ${!tail.loading && !tail.error && rows.length >= olderEventCount && olderEventCount < MAX_OLDER_EVENTS && html`<div class="actions">
      <${Button} onClick=${() => setQuery({ last: olderEventCount * 4 })}>Load older events<//></div>`}
  `;
}

/** @param {string} name @param {string | undefined} value */
function cliFlag(name, value) {
  return value ? [name, value] : [];
}

/** @param {import("./tail.js").TailState} tail @param {boolean} paused */
function rowCountText({ rows, buffered, dropped }, paused) {
  const shownCountText = `${formatCount(rows.length)} shown${dropped ? `, ${formatCount(dropped)} older ones removed` : ""}`;
  if (paused) return html`<span>${shownCountText}</span><${Badge} tone="warn">Paused, ${formatCount(buffered)} new<//>`;
  return html`<span>${shownCountText}</span>${streamConnectionState.value.phase === "open" ? null : html`<span>not live</span>`}`;
}

function filterFields() {
  return [
    { name: "return", label: "Type", hint: "record, OrderEvent", width: 180 },
    { name: "key", label: "Object", hint: "record:1", width: 180 },
    { name: "path", label: "Path", hint: "/publish/", width: 140 },
    ...(boundTenant.value === null ? [{ name: "tenant", label: "Tenant", hint: "default", width: 110 }] : []),
  ];
}

/** @param {{filtered: boolean, searching: boolean}} props */
function NoEvents({ filtered, searching }) {
  if (searching) return html`<${EmptyState} title="No matches yet" icon="search"><p>The server is still searching the older part of the journal.</p><//>`;
  if (filtered) return html`<${EmptyState} title="No event matches" icon="filter"><p>Clear a filter, or wait: matching events appear here.</p><//>`;
  return html`<${EmptyState} title="No events yet" icon="stream">
    <p>Emit an event to see it here: <code>${cliCommand("emit", "record.published", "--key", "record:1")}</code></p><//>`;
}

/** @param {StreamRow} row */
function openRow({ eventId, change }) {
  if (eventId) navigate(screenPaths.event(eventId));
  else if (change) navigate(screenPaths.task(change.id));
}

/** @type {import("../../parts/table.js").Column<StreamRow>[]} */
const COLUMNS = [
  { name: "time", title: "Time", width: 112, onSmallScreens: true, cell: (row) => html`<${TimeWithDayUnlessToday} at=${row.at} />` },
  { name: "type", title: "Type", grow: 24, onSmallScreens: true, cell: typeCell },
  { name: "key", title: "Object", grow: 26, onSmallScreens: true, cell: objectCell },
  { name: "tenant", title: "Tenant", width: 100, cell: (row) => html`<span class="faint">${row.tenant}</span>` },
  { name: "text", title: "Value", grow: 50, cell: (row) => html`<span class="mono soft">${row.text}</span>` },
  { name: "id", title: "Event", width: 150, alignRight: true, cell: (row) => (row.eventId ? html`<${EventLink} id=${row.eventId} />` : row.change && html`<${TaskLink} id=${row.change.id} short />`) },
];

/** @param {StreamRow} row */
function objectCell({ kind, taskId, key, tenant }) {
  if (kind === "gap") return null;
  if (taskId) return html`<${TaskLink} id=${taskId} short />`;
  return key === null ? html`<span class="faint">–</span>` : html`<${ObjectOrOrderLink} objectKey=${key} tenant=${tenant} />`;
}

/** @param {StreamRow} row */
function typeCell(row) {
  if (row.kind === "gap") return html`<${Badge} tone="warn" title=${row.text}>Gap<//>`;
  if (row.change) return html`<span class="task-change"><${TaskStatusBadge} status=${row.change.status} state=${row.change.state} attempt=${row.change.attempt} /> <${Link} to=${screenPaths.handler(row.type)}>${row.type}<//></span>`;
  return html`<span class=${row.tenant === "" ? "soft" : ""}>${row.type}</span>`;
}
