// The queues of a handler: one for each tenant, each collection of a source, each node of a chain.

import { brief, counted } from "../../data/numbers.js";
import { bound, may } from "../../data/session.js";
import { duration } from "../../data/time.js";
import { Badge } from "../../parts/badge.js";
import { Button } from "../../parts/button.js";
import { Panel } from "../../parts/facts.js";
import { Link } from "../../parts/link.js";
import { askHold } from "../../parts/rules.js";
import { Empty } from "../../parts/states.js";
import { Table } from "../../parts/table.js";
import { html } from "../../parts/ui.js";
import { places } from "../../shell/router.js";

/** @typedef {import("../../data/bodies.js").Handler} Handler */
/** @typedef {import("../../data/bodies.js").Queue} Queue */

/** @param {number} number */
function cell(number) {
  return number ? brief(number) : html`<span class="faint">0</span>`;
}

/** @param {Handler} handler @param {() => void} after
 * @returns {import("../../parts/table.js").Column<Queue>[]} */
function columns({ name, source }, after) {
  /** @param {Queue} queue */
  const pause = (queue) => askHold("pause", source && queue.collection !== null
    ? { space: "collection", name: `${name}/${queue.collection}` } : { space: "handler", name }, after, queue.tenant);
  return [
    { name: "tenant", title: "Tenant", grow: 22, narrow: true, cell: (queue) => html`<${Link} to=${places.tasks({ handler: name, tenant: queue.tenant, collection: queue.collection })}>${queue.tenant}<//>` },
    { name: "of", title: "For", grow: 30, cell: of },
    { name: "held", title: "State", width: 84, narrow: true, cell: (queue) => (queue.held ? html`<${Badge} tone="warn">On hold<//>` : queue.running ? html`<${Badge} tone="busy">Running<//>` : html`<${Badge} tone="idle">Idle<//>`) },
    { name: "ready", title: "Ready", width: 60, right: true, narrow: true, cell: (queue) => cell(queue.ready + queue.scheduled) },
    { name: "waiting", title: "Waiting", width: 66, right: true, cell: (queue) => cell(queue.waiting) },
    { name: "running", title: "Running", width: 68, right: true, cell: (queue) => cell(queue.running) },
    { name: "stuck", title: "Stuck", width: 56, right: true, cell: (queue) => cell(queue.halted + queue.missing) },
    { name: "oldest", title: "Oldest", width: 100, right: true, cell: (queue) => (queue.oldest_runnable_seconds === null ? html`<span class="faint">–</span>` : duration(queue.oldest_runnable_seconds * 1000)) },
    { name: "act", title: "Action", width: 92, right: true, hidden: !may("operator") || bound.value !== null, cell: (queue) => !queue.held && html`<${Button} small kind="quiet" icon="pause" onClick=${() => pause(queue)}>Pause<//>` },
  ];
}

/** @param {Queue} queue */
function of({ collection, chain, node }) {
  if (chain !== null) return html`<${Link} to=${places.chain(chain)}>${chain}<//> <span class="faint">at ${node}</span>`;
  return collection === null ? html`<span class="faint">events</span>` : html`collection ${collection}`;
}

/** @param {{handler: Handler, after: () => void}} props */
export function Queues({ handler, after }) {
  const { queues, more_queues: more } = handler;
  return html`<${Panel} title="Queues" flush aside=${more > 0 ? `the ${queues.length} busiest, ${counted(more, "other")} not shown` : counted(queues.length, "queue")}>
    <${Table} label="Queues" columns=${columns(handler, after)} rows=${queues} keys=${queues.length > 0}
      id=${(/** @type {Queue} */ queue) => JSON.stringify([queue.tenant, queue.collection, queue.chain, queue.node])}
      empty=${html`<${Empty} title="No tasks" icon="task"><p>Queues with waiting or running tasks appear here.</p><//>`} />
  <//>`;
}
