// One order: where it stands, its value, the way it has come, and what can be done to it.

import { api } from "../../data/api.js";
import { useLiveData } from "../../data/live-data.js";
import { pluralize } from "../../data/numbers.js";
import { Problem } from "../../data/problem.js";
import { boundTenant } from "../../data/session.js";
import { Badge } from "../../parts/badge.js";
import { Button } from "../../parts/button.js";
import { cliCommand, CopyAsMenu } from "../../parts/copy.js";
import { PropertyList, ScreenHeader, Panel } from "../../parts/panel.js";
import { JsonView } from "../../parts/json.js";
import { EventLink, Link, TaskLink } from "../../parts/link.js";
import { Notice, LiveView } from "../../parts/states.js";
import { Table } from "../../parts/table.js";
import { TimeOfDay, DateTime } from "../../parts/time.js";
import { Timeline } from "../../parts/timeline.js";
import { html } from "../../parts/ui.js";
import { useCommands } from "../../shell/commands.js";
import { screenPaths } from "../../shell/router.js";
import { orderEnding, eventsOfOrder, timelineRows } from "./timeline.js";
import { OrderStateBadge } from "./state.js";
import { orderUrl, changeOrder, removeOrder, resumeOrder, suspendOrder } from "./commands.js";

/** @typedef {import("../../data/api-types.js").Order} Order */
/** @typedef {import("../../data/api-types.js").Chain} Chain */
/** @typedef {import("../../data/filter.js").JournalEvent} JournalEvent */
/** @typedef {{eventId: number, order: Order | null, chain: Chain | null, events: JournalEvent[], cut: boolean}} OrderData */

/** How many of its events are looked at. */
const MAX_EVENTS = 1000;

/** @param {string} path @param {string} tenant @param {AbortSignal} signal
 * @returns {Promise<OrderData>} */
async function readOrder(path, tenant, signal) {
  const chainPath = path.slice(0, path.lastIndexOf(","));
  const [{ orders }, { chains }, seq] = await Promise.all([
    api.get("/api/v1/orders", { query: { path, tenant, limit: 1 }, signal, exact: true }),
    api.get("/api/v1/chains", { signal }),
    api.get("/api/v1/events", { query: { path, tenant, limit: -MAX_EVENTS }, signal }),
  ]);
  const order = /** @type {Order[]} */ (orders).find((one) => one.path === path) ?? null;
  const all = /** @type {JournalEvent[]} */ (seq.eventSnapshots ?? []).reverse();
  const events = eventsOfOrder(all, path);
  // One that has arrived is still remembered by its events.
  if (!order && events.length === 0) throw new Problem({ status: 404, detail: `There is no order ${path} of the tenant ${tenant}, and the journal has no events of it.` });
  const chain = /** @type {Chain[]} */ (chains).find((one) => one.path === chainPath) ?? null;
  return { eventId: seq.eventId, order, chain, events, cut: all.length === MAX_EVENTS };
}

/** @param {{params: Record<string, string>, query: Record<string, string>}} props */
export default function OrderScreen({ params, query }) {
  const path = `/${params.path}`;
  const tenant = query.tenant || boundTenant.value || "default";
  const known = useLiveData({ read: (signal) => readOrder(path, tenant, signal), filter: { path }, calm: 400, every: 10_000 }, [path, tenant]);
  return html`<${LiveView} of=${known} lines=${10} what="The order could not be loaded">
    ${(/** @type {OrderData} */ data) => html`<${OrderDetail} path=${path} tenant=${tenant} known=${data} after=${known.reload} />`}<//>`;
}

/** @param {{path: string, tenant: string, known: OrderData, after: () => void}} props */
function OrderDetail({ path, tenant, known: { order, chain, events, cut }, after }) {
  const end = order ? null : orderEnding(events);
  const named = tenant === "default" ? "" : tenant;
  const of = named ? ["--tenant", named] : [];
  useCommands(order ? [{ title: order.suspended ? "Resume this order" : "Suspend this order", run: () => (order.suspended ? resumeOrder(order, after) : suspendOrder(order, after)) }] : []);
  const comma = path.lastIndexOf(",");
  return html`
    <${ScreenHeader} title=${html`<span class="faint">${path.slice(0, comma)},</span>${path.slice(comma + 1)}`} sub=${order
      ? html`<${OrderStateBadge} order=${order} /><span>at ${order.node}</span>`
      : html`<${Badge} tone=${end?.word === "arrived" ? "good" : "off"}>${end?.word === "arrived" ? `Arrived at ${end.node}` : end ? "Removed" : "Gone"}<//>${end && html`<${DateTime} at=${end.at} />`}<${Link} to=${screenPaths.tasks({ key: path, tenant: named })}>all tasks<//>`}>
      ${order && html`<${OrderActions} order=${order} chain=${chain} after=${after} />`}
      ${order ? html`<${CopyAsMenu} call=${{ path: orderUrl(path), query: { tenant: named } }} cli=${cliCommand("orders", "show", path, ...of)} />`
        : html`<${CopyAsMenu} call=${{ path: "/api/v1/events", query: { path, tenant: named, limit: -MAX_EVENTS } }} cli=${cliCommand("tasks", "list", "--key", path, ...of)} />`}
    <//>
    ${order && html`<${OrderNotice} order=${order} />`}
    ${!order && html`<${Notice}>The order has ended. This page shows the events that the journal still has.<//>`}
    <${Panel} title="Timeline" aside=${cut ? `its newest ${MAX_EVENTS} events` : null}>
      ${events.length === 0 ? html`<p class="soft">The journal has no events of its steps.</p>`
        : html`<div class="gantt"><${Timeline} rows=${timelineRows(events, order !== null)} label=${`Timeline of ${path}, one row per node`} />
          <${TimelineLegend} /></div>`}
    <//>
    <div class=${order ? "columns" : "stack"}>
      <div class="stack">
        ${order && html`<${Panel} title="Value"><${JsonView} value=${order.value ?? null} label="Value" /><//>`}
        <${OrderEvents} events=${events} />
      </div>
      ${order && html`<div class="stack"><${OrderProperties} order=${order} /></div>`}
    </div>`;
}

function TimelineLegend() {
  const keys = [["busy", "step running"], ["good", "succeeded"], ["bad", "failed"], ["warn", "waiting to be retried"], ["off", "suspended"], ["idle", "waiting"]];
  return html`<ul class="gantt-legend">${keys.map(([tone, word]) => html`<li key=${word}><span class=${`swatch ${tone}`}></span>${word}</li>`)}</ul>`;
}

/** @param {{order: Order, chain: Chain | null, after: () => void}} props */
function OrderActions({ order, chain, after }) {
  const running = order.task?.status === "RUNNING";
  const why = running ? "A step is running. Suspend the order and wait for the step to end." : undefined;
  return html`
    ${order.suspended
      ? html`<${Button} kind="primary" icon="play" role="operator" onClick=${() => resumeOrder(order, after)}>Resume<//>`
      : html`<${Button} icon="pause" role="operator" onClick=${() => suspendOrder(order, after)}>Suspend<//>`}
    <${Button} icon="configuration" role="operator" disabled=${running} title=${why} onClick=${() => changeOrder(order, chain, after)}>Change<//>
    <${Button} icon="close" kind="danger" role="operator" disabled=${running} title=${why} onClick=${() => removeOrder(order, after)}>Remove<//>`;
}

/** What keeps it, and the way out. @param {{order: Order}} props */
function OrderNotice({ order: { suspended, failed, stranded, held, setback_until, node } }) {
  if (suspended && failed) {
    return html`<${Notice} tone="bad"><span>Its step at <b>${node}</b> failed: ${failed.error}</span><span class="soft">Resume to run the step again.</span>
      <${TaskLink} id=${failed.task} short /><//>`;
  }
  if (suspended) return html`<${Notice} tone="warn">Suspended: the order starts no step and does not finish until it is resumed.<//>`;
  if (stranded) return html`<${Notice} tone="bad">The chain no longer has the node <b>${node}</b>. Change the node of the order, or define that node again.<//>`;
  if (setback_until) return html`<${Notice} tone="warn"><span>Its step failed and will be retried at <${TimeOfDay} at=${setback_until} fine=${false} />.</span><//>`;
  if (held) return html`<${Notice} tone="warn">${held}<//>`;
  return null;
}

/** @param {{order: Order}} props */
function OrderProperties({ order }) {
  return html`<${Panel} title="Order">
    <${PropertyList} of=${[
      ["Chain", html`<${Link} to=${screenPaths.chain(order.chain)} class="mono">${order.chain}<//>`],
      ["Node", order.node],
      ["Step", order.task && html`<${TaskLink} id=${order.task.id} short />`],
      ["Step begins", order.task?.status === "SCHEDULED" && html`<${TimeOfDay} at=${order.task.due} fine=${false} />`],
      ["Tenant", order.tenant],
      ["Priority", String(order.priority)],
      ["Added", html`<${DateTime} at=${order.created_at} />`],
      ["Planned for", order.planned_at && html`<${DateTime} at=${order.planned_at} />`],
      ["Started", html`<${DateTime} at=${order.started_at} none="not yet" />`],
      ["Tasks", html`<${Link} to=${screenPaths.tasks({ key: order.path, tenant: order.tenant === "default" ? "" : order.tenant })}>all tasks<//>`],
    ]} />
  <//>`;
}

/** @type {import("../../parts/table.js").Column<JournalEvent>[]} */
const COLUMNS = [
  { name: "time", title: "Time", width: 112, narrow: true, cell: (event) => html`<${TimeOfDay} at=${event.eventId} />` },
  { name: "type", title: "Event", width: 152, narrow: true, cell: (event) => event.TYPE },
  { name: "what", title: "Description", grow: 55, narrow: true, cell: (event) => html`<span class="soft">${says(event)}</span>` },
  { name: "task", title: "Task", grow: 45, cell: (event) => (typeof event.taskId === "string" ? html`<${TaskLink} id=${event.taskId} short />` : "") },
  { name: "id", title: "Id", width: 150, right: true, cell: (event) => html`<${EventLink} id=${event.eventId} />` },
];

/** @param {JournalEvent} event */
function says(event) {
  const transition = /** @type {{TYPE?: string, returnCode?: number} | undefined} */ (event.nodeTransition);
  if (transition) return `${transition.TYPE}${transition.returnCode === undefined ? "" : `, return code ${transition.returnCode}`}`;
  if (typeof event.fromNodeId === "string") return `${event.fromNodeId} → ${event.nodeId}`;
  return typeof event.nodeId === "string" ? `at ${event.nodeId}` : "";
}

/** @param {{events: JournalEvent[]}} props */
function OrderEvents({ events }) {
  const newest = [...events].reverse();
  return html`<${Panel} title="Events" flush aside=${pluralize(events.length, "event")}>
    <${Table} label="Events of the order, newest first" columns=${COLUMNS} rows=${newest} id=${(/** @type {JournalEvent} */ event) => String(event.eventId)} />
  <//>`;
}
