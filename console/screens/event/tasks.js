// The tasks of an event.

import { TaskStatusBadge } from "../../parts/badge.js";
import { Panel } from "../../parts/panel.js";
import { HandlerLink, TaskLink } from "../../parts/link.js";
import { EmptyState } from "../../parts/states.js";
import { Table } from "../../parts/table.js";
import { RelativeTime, Duration } from "../../parts/time.js";
import { html } from "../../parts/ui.js";
import { pluralize } from "../../data/numbers.js";
import { screenExists, navigate, screenPaths } from "../../shell/router.js";

/** @typedef {import("../../data/api-types.js").Task} Task */

/** @type {import("../../parts/table.js").Column<Task>[]} */
const COLUMNS = [
  { name: "status", title: "Status", width: 110, onSmallScreens: true, cell: (task) => html`<${TaskStatusBadge} status=${task.status} state=${task.state} attempt=${task.attempt} />` },
  { name: "handler", title: "Handler", grow: 25, onSmallScreens: true, cell: (task) => html`<${HandlerLink} name=${task.handler} />` },
  { name: "started", title: "Started", width: 92, cell: (task) => html`<${RelativeTime} at=${task.started_at} />` },
  { name: "duration", title: "Duration", width: 80, alignRight: true, cell: (task) => (task.started_at ? html`<${Duration} from=${task.started_at} to=${task.finished_at} />` : "–") },
  { name: "attempt", title: "Attempts", width: 76, alignRight: true, cell: (task) => task.attempt },
  { name: "error", title: "Error", grow: 45, onSmallScreens: true, cell: (task) => html`<span title=${task.error} class="bad-text">${task.error}</span>` },
  { name: "id", title: "Task", width: 130, cell: (task) => html`<${TaskLink} id=${task.id} short />` },
];

/** @param {{tasks: Task[]}} props */
export function EventTasks({ tasks }) {
  const openTask = screenExists(screenPaths.task("x")) ? (/** @type {Task} */ task) => navigate(screenPaths.task(task.id)) : undefined;
  return html`<${Panel} title="Tasks" flush aside=${pluralize(tasks.length, "task")}>
    <${Table} label="Tasks of this event" columns=${COLUMNS} rows=${tasks} id=${(/** @type {Task} */ task) => task.id} onOpen=${openTask}
      empty=${html`<${EmptyState} title="No tasks" icon="handler"><p>No handler was routed to this type when the event was emitted, or its tasks have expired.</p><//>`} />
  <//>`;
}
