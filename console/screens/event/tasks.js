// The tasks that an event made.

import { Status } from "../../parts/badge.js";
import { Panel } from "../../parts/facts.js";
import { HandlerLink, TaskLink } from "../../parts/link.js";
import { Empty } from "../../parts/states.js";
import { Table } from "../../parts/table.js";
import { Ago, Duration } from "../../parts/time.js";
import { html } from "../../parts/ui.js";
import { counted } from "../../data/numbers.js";
import { exists, go, places } from "../../shell/router.js";

/** @typedef {import("../../data/bodies.js").Task} Task */

/** @type {import("../../parts/table.js").Column<Task>[]} */
const COLUMNS = [
  { name: "status", title: "Status", width: 110, narrow: true, cell: (task) => html`<${Status} status=${task.status} state=${task.state} attempt=${task.attempt} />` },
  { name: "handler", title: "Handler", grow: 25, narrow: true, cell: (task) => html`<${HandlerLink} name=${task.handler} />` },
  { name: "started", title: "Started", width: 92, cell: (task) => html`<${Ago} at=${task.started_at} />` },
  { name: "took", title: "Duration", width: 80, right: true, cell: (task) => (task.started_at ? html`<${Duration} from=${task.started_at} to=${task.finished_at} />` : "–") },
  { name: "attempt", title: "Attempts", width: 76, right: true, cell: (task) => task.attempt },
  { name: "error", title: "Error", grow: 45, narrow: true, cell: (task) => html`<span title=${task.error} class="bad-text">${task.error}</span>` },
  { name: "id", title: "Task", width: 130, cell: (task) => html`<${TaskLink} id=${task.id} short />` },
];

/** @param {{tasks: Task[]}} props */
export function Tasks({ tasks }) {
  const open = exists(places.task("x")) ? (/** @type {Task} */ task) => go(places.task(task.id)) : undefined;
  return html`<${Panel} title="Tasks" flush aside=${counted(tasks.length, "task")}>
    <${Table} label="Tasks of this event" columns=${COLUMNS} rows=${tasks} id=${(/** @type {Task} */ task) => task.id} onOpen=${open}
      empty=${html`<${Empty} title="No tasks" icon="handler"><p>No handler was routed to this type when the event was emitted, or its tasks have expired.</p><//>`} />
  <//>`;
}
