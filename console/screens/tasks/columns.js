// Columns of the task table.

import { boundTenant } from "../../data/session.js";
import { TaskStatus } from "../../parts/badge.js";
import { HandlerLink, KeyLink, TaskLink } from "../../parts/link.js";
import { Ago, Duration } from "../../parts/time.js";
import { html } from "../../parts/ui.js";

/** @typedef {import("../../data/api-types.js").Task} Task */
/** @typedef {import("../../parts/table.js").Column<Task>} Column */

const DASH = html`<span class="faint">–</span>`;

/** @param {import("../../data/tasks.js").TaskFilter} wanted a field with one value needs no column
 * @returns {Column[]} */
export function taskColumns({ handler, source, tenant, key }) {
  return [
    { name: "status", title: "Status", width: 108, narrow: true, cell: (task) => html`<${TaskStatus} status=${task.status} state=${task.state} attempt=${task.attempt} />` },
    { name: "handler", title: "Handler", grow: 17, narrow: true, hidden: Boolean(handler || source), cell: (task) => html`<${HandlerLink} name=${task.handler} />` },
    { name: "collection", title: "Type", grow: 24, narrow: Boolean(handler || source), cell: (task) => html`<span title=${task.collection}>${task.collection}</span>` },
    { name: "key", title: "Object", grow: 24, narrow: true, hidden: Boolean(key), cell: (task) => (task.key === null ? DASH : html`<${KeyLink} objectKey=${task.key} tenant=${task.tenant} />`) },
    { name: "tenant", title: "Tenant", width: 76, hidden: Boolean(tenant) || boundTenant.value !== null, cell: (task) => html`<span class="faint" title=${task.tenant}>${task.tenant}</span>` },
    { name: "created", title: "Created", width: 98, cell: (task) => html`<${Ago} at=${task.created_at} />` },
    { name: "took", title: "Duration", width: 92, right: true, cell: durationCell },
    { name: "attempt", title: "Attempts", width: 76, right: true, cell: (task) => task.attempt || DASH },
    { name: "error", title: "Error", grow: 22, cell: errorCell },
    { name: "id", title: "Task", width: 80, cell: (task) => html`<${TaskLink} id=${task.id} tail />` },
  ];
}

/** @param {Task} task */
function durationCell(task) {
  if (!task.started_at || task.status === "SCHEDULED") return DASH;
  return html`<${Duration} from=${task.started_at} to=${task.finished_at} />`;
}

/** The error, and the retry time of a waiting task.
 * @param {Task} task */
function errorCell(task) {
  const retryTime = task.status === "SCHEDULED" && task.delay_until ? html`<span class="soft">due <${Ago} at=${task.delay_until} /></span> ` : null;
  const tone = task.status === "FAILED" ? "bad-text" : "soft";
  return html`${retryTime}${task.error && html`<span class=${tone} title=${task.error}>${task.error}</span>`}`;
}
