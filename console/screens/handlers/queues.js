// The queues of a handler: one for each tenant, each collection of a source, each node of a chain.

import { formatCompactNumber, pluralize } from "../../data/numbers.js";
import { boundTenant, hasRole } from "../../data/session.js";
import { formatDuration } from "../../data/time.js";
import { Badge } from "../../parts/badge.js";
import { Button } from "../../parts/button.js";
import { Panel } from "../../parts/panel.js";
import { Link } from "../../parts/link.js";
import { promptAndSetRule } from "../../parts/rules.js";
import { EmptyState } from "../../parts/states.js";
import { Table } from "../../parts/table.js";
import { html } from "../../parts/ui.js";
import { screenPaths } from "../../shell/router.js";

/** @typedef {import("../../data/api-types.js").Handler} Handler */
/** @typedef {import("../../data/api-types.js").Queue} Queue */

/** @param {number} number */
function countCell(number) {
  return number ? formatCompactNumber(number) : html`<span class="faint">0</span>`;
}

/** @param {Handler} handler @param {() => void} onChange
 * @returns {import("../../parts/table.js").Column<Queue>[]} */
function queueColumns({ name, source }, onChange) {
  /** @param {Queue} queue */
  const promptForPause = (queue) => promptAndSetRule("pause", source && queue.collection !== null
    ? { space: "collection", name: `${name}/${queue.collection}` } : { space: "handler", name }, onChange, queue.tenant);
  return [
    { name: "tenant", title: "Tenant", grow: 22, onSmallScreens: true, cell: (queue) => html`<${Link} to=${screenPaths.tasks({ handler: name, tenant: queue.tenant, collection: queue.collection })}>${queue.tenant}<//>` },
    { name: "subject", title: "For", grow: 30, cell: collectionOrChainCell },
    { name: "state", title: "State", width: 84, onSmallScreens: true, cell: (queue) => (queue.held ? html`<${Badge} tone="warn">On hold<//>` : queue.running ? html`<${Badge} tone="busy">Running<//>` : html`<${Badge} tone="idle">Idle<//>`) },
    { name: "ready", title: "Ready", width: 60, alignRight: true, onSmallScreens: true, cell: (queue) => countCell(queue.ready + queue.scheduled) },
    { name: "waiting", title: "Waiting", width: 66, alignRight: true, cell: (queue) => countCell(queue.waiting) },
    { name: "running", title: "Running", width: 68, alignRight: true, cell: (queue) => countCell(queue.running) },
    { name: "stuck", title: "Stuck", width: 56, alignRight: true, cell: (queue) => countCell(queue.halted + queue.missing) },
    { name: "oldest", title: "Oldest", width: 100, alignRight: true, cell: (queue) => (queue.oldest_runnable_seconds === null ? html`<span class="faint">–</span>` : formatDuration(queue.oldest_runnable_seconds * 1000)) },
    { name: "action", title: "Action", width: 92, alignRight: true, hidden: !hasRole("operator") || boundTenant.value !== null, cell: (queue) => !queue.held && html`<${Button} small kind="quiet" icon="pause" onClick=${() => promptForPause(queue)}>Pause<//>` },
  ];
}

/** @param {Queue} queue */
function collectionOrChainCell({ collection, chain, node }) {
  if (chain !== null) return html`<${Link} to=${screenPaths.chain(chain)}>${chain}<//> <span class="faint">at ${node}</span>`;
  return collection === null ? html`<span class="faint">events</span>` : html`collection ${collection}`;
}

/** @param {{handler: Handler, onChange: () => void}} props */
export function QueueTable({ handler, onChange }) {
  const { queues, more_queues: hiddenCount } = handler;
  return html`<${Panel} title="Queues" flush aside=${hiddenCount > 0 ? `the ${queues.length} busiest, ${pluralize(hiddenCount, "other")} not shown` : pluralize(queues.length, "queue")}>
    <${Table} label="Queues" columns=${queueColumns(handler, onChange)} rows=${queues} hasShortcuts=${queues.length > 0}
      id=${(/** @type {Queue} */ queue) => JSON.stringify([queue.tenant, queue.collection, queue.chain, queue.node])}
      empty=${html`<${EmptyState} title="No tasks" icon="task"><p>Queues with waiting or running tasks appear here.</p><//>`} />
  <//>`;
}
