// Columns of the task table.

import { boundTenant } from "../../data/session.js";
import { TaskStatusBadge } from "../../parts/badge.js";
import { HandlerLink, ObjectOrOrderLink, TaskLink } from "../../parts/link.js";
import { RelativeTime, Duration } from "../../parts/time.js";
import { html } from "../../parts/ui.js";

/** @typedef {import("../../data/api-types.js").Task} Task */
/** @typedef {import("../../parts/table.js").Column<Task>} Column */

const EMPTY_CELL = html`<span class="faint">–</span>`;

/** @param {import("../../data/tasks.js").TaskFilter} filter a field that it fixes to one value needs no column
 * @returns {Column[]} */
export function taskColumns({ handler, source, tenant, key }) {
  return [
    { name: "status", title: "Status", width: 108, onSmallScreens: true, cell: (task) => html`<${TaskStatusBadge} status=${task.status} state=${task.state} attempt=${task.attempt} />` },
    { name: "handler", title: "Handler", grow: 17, onSmallScreens: true, hidden: Boolean(handler || source), cell: (task) => html`<${HandlerLink} name=${task.handler} />` },
    { name: "collection", title: "Type", grow: 24, onSmallScreens: Boolean(handler || source), cell: (task) => html`<span title=${task.collection}>${task.collection}</span>` },
    { name: "key", title: "Object", grow: 24, onSmallScreens: true, hidden: Boolean(key), cell: (task) => (task.key === null ? EMPTY_CELL : html`<${ObjectOrOrderLink} objectKey=${task.key} tenant=${task.tenant} />`) },
    { name: "tenant", title: "Tenant", width: 76, hidden: Boolean(tenant) || boundTenant.value !== null, cell: (task) => html`<span class="faint" title=${task.tenant}>${task.tenant}</span>` },
    { name: "created", title: "Created", width: 98, cell: (task) => html`<${RelativeTime} at=${task.created_at} />` },
    { name: "duration", title: "Duration", width: 92, alignRight: true, cell: durationCell },
    { name: "attempt", title: "Attempts", width: 76, alignRight: true, cell: (task) => task.attempt || EMPTY_CELL },
    { name: "error", title: "Error", grow: 22, cell: errorCell },
    { name: "id", title: "Task", width: 80, cell: (task) => html`<${TaskLink} id=${task.id} suffixOnly />` },
  ];
}

/** @param {Task} task */
function durationCell(task) {
  if (!task.started_at || task.status === "SCHEDULED") return EMPTY_CELL;
  return html`<${Duration} from=${task.started_at} to=${task.finished_at} />`;
}

/** The error, and the due time of a waiting task.
 * @param {Task} task */
function errorCell(task) {
  const dueTime = task.status === "SCHEDULED" && task.delay_until ? html`<span class="soft">due <${RelativeTime} at=${task.delay_until} /></span> ` : null;
  const tone = task.status === "FAILED" ? "bad-text" : "soft";
  return html`${dueTime}${task.error && html`<span class=${tone} title=${task.error}>${task.error}</span>`}`;
}
