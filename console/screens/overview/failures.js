// The latest failed tasks.

import { Panel } from "../../parts/panel.js";
import { HandlerLink, ObjectOrOrderLink, Link, TaskLink } from "../../parts/link.js";
import { EmptyState } from "../../parts/states.js";
import { Table } from "../../parts/table.js";
import { RelativeTime } from "../../parts/time.js";
import { html } from "../../parts/ui.js";
import { navigate, screenPaths } from "../../shell/router.js";

/** @typedef {import("../../data/api-types.js").Task} Task */

/** @type {import("../../parts/table.js").Column<Task>[]} */
const COLUMNS = [
  { name: "failed_at", title: "Failed", width: 92, onSmallScreens: true, cell: (task) => html`<${RelativeTime} at=${task.finished_at || task.created_at} />` },
  { name: "handler", title: "Handler", grow: 18, onSmallScreens: true, cell: (task) => html`<${HandlerLink} name=${task.handler} />` },
  { name: "key", title: "Object", grow: 22, cell: (task) => (task.key === null ? html`<span class="faint">–</span>` : html`<${ObjectOrOrderLink} objectKey=${task.key} tenant=${task.tenant} />`) },
  { name: "error", title: "Error", grow: 60, onSmallScreens: true, cell: (task) => html`<span title=${task.error}>${task.error}</span>` },
  { name: "id", title: "Task", width: 150, cell: (task) => html`<${TaskLink} id=${task.id} short />` },
];

/** @param {{tasks: Task[]}} props */
export function LatestFailures({ tasks }) {
  const openTask = (/** @type {Task} */ task) => navigate(screenPaths.task(task.id));
  return html`<${Panel} title="Latest failures" flush aside=${tasks.length > 0 && html`<${Link} to="/failures">All<//>`}>
    <${Table} label="Latest failed tasks" hasShortcuts=${false} columns=${COLUMNS} rows=${tasks} id=${(/** @type {Task} */ task) => task.id} onOpen=${openTask}
      empty=${html`<${EmptyState} title="No task has failed" icon="task" />`} />
  <//>`;
}
