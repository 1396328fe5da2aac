// The nodes: state, slots, handlers, clock and heartbeat.

import { api } from "../../data/api.js";
import { useLiveData } from "../../data/live-data.js";
import { pluralize } from "../../data/numbers.js";
import { now } from "../../data/time.js";
import { Badge } from "../../parts/badge.js";
import { cliCommand, CopyAsMenu } from "../../parts/copy.js";
import { PropertyList, ScreenHeader, Panel } from "../../parts/panel.js";
import { HandlerLink } from "../../parts/link.js";
import { EmptyState, Notice, LiveView } from "../../parts/states.js";
import { Table } from "../../parts/table.js";
import { RelativeTime, DateTime } from "../../parts/time.js";
import { html } from "../../parts/ui.js";
import { setQuery } from "../../shell/router.js";

/** @typedef {import("../../data/api-types.js").Node} Node */
/** @typedef {import("../../data/api-types.js").Handler} Handler */
/** @typedef {{eventId: number, nodes: Node[], handlers: Handler[]}} NodesData */

/** A live node sends a heartbeat every few seconds. */
const HEARTBEAT_OVERDUE_MS = 15_000;

/** @param {AbortSignal} signal
 * @returns {Promise<NodesData>} */
async function readNodes(signal) {
  const [{ eventId, nodes }, { handlers }] = await Promise.all([api.get("/api/v1/nodes", { signal }), api.get("/api/v1/handlers", { signal })]);
  return { eventId, nodes, handlers };
}

/** @param {{query: Record<string, string>}} props */
export default function Nodes({ query }) {
  const live = useLiveData({ read: readNodes, filter: { types: ["SchedulerEvent"] }, pollInterval: 2000 }, []);
  const aliveNodes = live.data?.nodes.filter((node) => node.alive) ?? [];
  const [slots, running] = [sumOverNodes(aliveNodes, "slots"), sumOverNodes(aliveNodes, "running")];
  return html`
    <${ScreenHeader} title="Nodes" subtitle=${live.data && html`<span>${aliveNodes.length} alive</span><span>${running} of ${pluralize(slots, "slot")} in use</span>`}>
      <${CopyAsMenu} call=${{ path: "/api/v1/nodes" }} cli=${cliCommand("nodes")} />
    <//>
    <${LiveView} live=${live} lines=${6} errorTitle="The nodes could not be loaded">${(/** @type {NodesData} */ data) => html`<${NodeList} data=${data} selectedId=${query.node} />`}<//>`;
}

/** @param {Node[]} nodes @param {"slots" | "running"} name */
function sumOverNodes(nodes, name) {
  return nodes.reduce((total, node) => total + node[name], 0);
}

/** @param {{data: NodesData, selectedId: string | undefined}} props */
function NodeList({ data: { nodes, handlers }, selectedId }) {
  const aliveNodes = nodes.filter((node) => node.alive);
  const runnableHandlers = new Set(aliveNodes.flatMap((node) => node.handlers));
  const handlersWithoutNode = handlers.filter((handler) => handler.defined && handler.run !== "pull" && !runnableHandlers.has(handler.name));
  const selectedNode = nodes.find((candidate) => String(candidate.id) === selectedId) ?? (nodes.length === 1 ? nodes[0] : undefined);
  return html`
    ${handlersWithoutNode.length > 0 && html`<${Notice} tone="warn"><span>No live node can run ${handlersWithoutNode.map((handler, index) => html`${index ? ", " : ""}<${HandlerLink} key=${handler.name} name=${handler.name} />`)}.
      Their tasks wait until such a node joins.</span><//>`}
    <${Panel} title="Nodes" flush aside=${pluralize(nodes.length, "node")}>
      <${Table} label="Nodes, newest first" columns=${COLUMNS} rows=${nodes} id=${(/** @type {Node} */ row) => String(row.id)}
        onOpen=${(/** @type {Node} */ row) => setQuery({ node: selectedId === String(row.id) ? null : row.id })}
        rowClass=${(/** @type {Node} */ row) => !row.alive && "node-gone"}
        empty=${html`<${EmptyState} title="No node has joined" icon="node"><p>A process joins when it runs the scheduler or worker service.</p><//>`} />
    <//>
    ${selectedNode && html`<${NodeDetail} node=${selectedNode} />`}`;
}

/** @param {{node: Node}} props */
function NodeDetail({ node }) {
  return html`<${Panel} title=${node.name}>
    <${PropertyList} wide items=${[
      ["Id", String(node.id)],
      ["State", html`<${NodeStateBadge} node=${node} />`],
      ["Slots", `${node.running} of ${node.slots} in use`],
      ["Joined", html`<${DateTime} at=${node.joined_at} />`],
      ["Last heartbeat", html`<${DateTime} at=${node.last_heartbeat_at} />`],
      ["Clock", describeClockOffset(node.clock.offset_ms)],
      ["Last clock step", node.clock.last_step ? html`${formatSignedSeconds(node.clock.last_step.by_ms)} at <${DateTime} at=${node.clock.last_step.at} />` : "None since it joined"],
    ]} />
    <h3 class="node-handlers-title">Can run</h3>
    ${node.handlers.length === 0 ? html`<p class="soft">No handlers: this node runs other services, such as the API.</p>`
      : html`<ul class="node-handlers">${node.handlers.map((name) => html`<li key=${name}><${HandlerLink} name=${name} /></li>`)}</ul>`}
  <//>`;
}

/** @param {number} ms */
function describeClockOffset(ms) {
  if (Math.abs(ms) < 1000) return "Agrees with the store";
  return `${(Math.abs(ms) / 1000).toFixed(1)} s ${ms > 0 ? "ahead of" : "behind"} the store`;
}

/** @param {number} ms */
function formatSignedSeconds(ms) {
  return `${ms > 0 ? "+" : "−"}${(Math.abs(ms) / 1000).toFixed(1)} s`;
}

/** @param {{node: Node}} props */
function NodeStateBadge({ node: { alive, last_heartbeat_at, clock } }) {
  if (!alive) return html`<${Badge} tone="off">Gone<//>`;
  if (clock.out_of_service) return html`<${Badge} tone="bad" title=${`Its clock is ${describeClockOffset(clock.offset_ms)}. It claims no tasks until the clocks agree.`}>Clock skew<//>`;
  if (now.value - Date.parse(last_heartbeat_at) > HEARTBEAT_OVERDUE_MS) return html`<${Badge} tone="warn" title="No heartbeat for 15 seconds. If none arrives, other nodes take over its tasks.">No heartbeat<//>`;
  return html`<${Badge} tone="good">Alive<//>`;
}

/** @param {{node: Node}} props */
function SlotsCell({ node: { running, slots, alive } }) {
  if (!alive) return html`<span class="faint">–</span>`;
  return html`<span class="slots"><span class="slots-bar" aria-hidden="true"><span style=${{ width: `${Math.min(100, (running / Math.max(1, slots)) * 100)}%` }}></span></span>
    <span class="number">${running} of ${slots}</span></span>`;
}

/** @type {import("../../parts/table.js").Column<Node>[]} */
const COLUMNS = [
  { name: "name", title: "Node", grow: 40, onSmallScreens: true, cell: (node) => html`<span title=${node.name}>${node.name}</span>` },
  { name: "state", title: "State", width: 96, onSmallScreens: true, cell: (node) => html`<${NodeStateBadge} node=${node} />` },
  { name: "slots", title: "Slots in use", width: 170, onSmallScreens: true, cell: (node) => html`<${SlotsCell} node=${node} />` },
  { name: "handlers", title: "Can run", grow: 60, cell: (node) => html`<span title=${node.handlers.join(", ")}><span class="faint">${node.handlers.length}:</span> ${node.handlers.join(", ")}</span>` },
  { name: "clock", title: "Clock", width: 96, alignRight: true, cell: ({ clock }) => html`<span title=${describeClockOffset(clock.offset_ms)}>${Math.abs(clock.offset_ms) < 1000 ? "OK" : formatSignedSeconds(clock.offset_ms)}</span>` },
  { name: "heartbeat", title: "Heartbeat", width: 96, alignRight: true, cell: (node) => html`<${RelativeTime} at=${node.last_heartbeat_at} />` },
  { name: "joined", title: "Joined", width: 96, alignRight: true, cell: (node) => html`<${RelativeTime} at=${node.joined_at} />` },
];
