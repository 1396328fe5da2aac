// One order: state, value, timeline, events and commands.

import { api } from "../../data/api.js";
import { describeEngineEvent } from "../../data/engine-events.js";
import { useLiveData } from "../../data/live-data.js";
import { pluralize } from "../../data/numbers.js";
import { Problem } from "../../data/problem.js";
import { boundTenant } from "../../data/session.js";
import { now } from "../../data/time.js";
import { Badge } from "../../parts/badge.js";
import { Button } from "../../parts/button.js";
import { cliCommand, CopyAsMenu } from "../../parts/copy.js";
import { PropertyList, ScreenHeader, Panel } from "../../parts/panel.js";
import { JsonView } from "../../parts/json.js";
import { Link, TaskLink } from "../../parts/link.js";
import { Notice, LiveView } from "../../parts/states.js";
import { Table } from "../../parts/table.js";
import { TimeWithDayUnlessToday, DateTime } from "../../parts/time.js";
import { Timeline } from "../../parts/timeline.js";
import { html } from "../../parts/ui.js";
import { useScreenCommands } from "../../shell/commands.js";
import { screenPaths } from "../../shell/router.js";
import { describeOrderEnd, filterOrderEvents, timelineRows } from "./timeline.js";
import { OrderStateBadge } from "./order-state.js";
import { orderUrl, promptAndChangeOrder, confirmAndRemoveOrder, resumeOrder, suspendOrder } from "./commands.js";

/** @typedef {import("../../data/api-types.js").Order} Order */
/** @typedef {import("../../data/api-types.js").Chain} Chain */
/** @typedef {import("../../data/api-types.js").JournalEvent} JournalEvent */
/** @typedef {{eventId: number, order: Order | null, chain: Chain | null, events: JournalEvent[], isTruncated: boolean}}
 * OrderData */

/** Maximum events that are read. */
const MAX_READ_EVENTS = 1000;

/** @param {string} path @param {string} tenant @param {AbortSignal} signal
 * @returns {Promise<OrderData>} */
async function readOrder(path, tenant, signal) {
  const chainPath = path.slice(0, path.lastIndexOf(","));
  const [{ orders }, { chains }, eventPage] = await Promise.all([
    api.get("/api/v1/orders", { query: { path, tenant, limit: 1 }, signal, exactNumbers: true }),
    api.get("/api/v1/chains", { signal }),
    api.get("/api/v1/events", { query: { path, tenant, limit: -MAX_READ_EVENTS }, signal }),
  ]);
  const order = /** @type {Order[]} */ (orders).find((candidate) => candidate.path === path) ?? null;
  const eventsOfPath = /** @type {JournalEvent[]} */ (eventPage.eventSnapshots ?? []).reverse();
  const events = filterOrderEvents(eventsOfPath, path);
  // A finished order is shown from its events.
  if (!order && events.length === 0) throw new Problem({ status: 404, detail: `There is no order ${path} of the tenant ${tenant}, and the journal has no events of it.` });
  const chain = /** @type {Chain[]} */ (chains).find((candidate) => candidate.path === chainPath) ?? null;
  return { eventId: eventPage.eventId, order, chain, events, isTruncated: eventsOfPath.length === MAX_READ_EVENTS };
}

/** @param {{params: Record<string, string>, query: Record<string, string>}} props */
export default function OrderScreen({ params, query }) {
  const path = `/${params.path}`;
  const tenant = query.tenant || boundTenant.value || "default";
  const live = useLiveData({ read: (signal) => readOrder(path, tenant, signal), filter: { path }, minInterval: 400, pollInterval: 10_000 }, [path, tenant]);
  return html`<${LiveView} live=${live} lines=${10} errorTitle="The order could not be loaded">
    ${(/** @type {OrderData} */ data) => html`<${OrderDetail} path=${path} tenant=${tenant} data=${data} onChange=${live.reload} />`}<//>`;
}

/** @param {{path: string, tenant: string, data: OrderData, onChange: () => void}} props */
function OrderDetail({ path, tenant, data: { order, chain, events, isTruncated }, onChange }) {
  const ending = order ? null : describeOrderEnd(events);
  const tenantParam = tenant === "default" ? "" : tenant;
  const tenantFlags = tenantParam ? ["--tenant", tenantParam] : [];
  useScreenCommands(order ? [{ title: order.suspended ? "Resume this order" : "Suspend this order", run: () => (order.suspended ? resumeOrder(order, onChange) : suspendOrder(order, onChange)) }] : []);
  const comma = path.lastIndexOf(",");
  return html`
    <${ScreenHeader} title=${html`<span class="faint">${path.slice(0, comma)},</span>${path.slice(comma + 1)}`} subtitle=${order
      ? html`<${OrderStateBadge} order=${order} /><span>at ${order.node}</span>`
      : html`<${Badge} tone=${ending?.tone ?? "off"}>${ending?.label ?? "Ended"}<//>${ending && html`<${DateTime} at=${ending.at} />`}<${Link} to=${screenPaths.tasks({ key: path, tenant: tenantParam })}>all tasks<//>`}>
      ${order && html`<${OrderActions} order=${order} chain=${chain} onChange=${onChange} />`}
      ${order ? html`<${CopyAsMenu} call=${{ path: orderUrl(path), query: { tenant: tenantParam } }} cli=${cliCommand("orders", "show", path, ...tenantFlags)} />`
        : html`<${CopyAsMenu} call=${{ path: "/api/v1/events", query: { path, tenant: tenantParam, limit: -MAX_READ_EVENTS } }} cli=${cliCommand("tasks", "list", "--key", path, ...tenantFlags)} />`}
    <//>
    ${order && html`<${OrderNotice} order=${order} />`}
    ${!order && html`<${Notice}>The order has ended. This page shows the events that the journal still has.<//>`}
    <${Panel} title="Timeline" aside=${isTruncated ? `its newest ${MAX_READ_EVENTS} events` : null}>
      ${events.length === 0 ? html`<p class="soft">The journal has no events of its steps.</p>`
        : html`<div class="order-timeline"><${Timeline} rows=${timelineRows(events, order !== null)} label=${`Timeline of ${path}, one row per node`} />
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
  const entries = [["busy", "step running"], ["good", "succeeded"], ["bad", "failed"], ["warn", "waiting to be retried"], ["off", "suspended"], ["idle", "waiting"]];
  return html`<ul class="timeline-legend">${entries.map(([tone, label]) => html`<li key=${label}><span class=${`swatch ${tone}`}></span>${label}</li>`)}</ul>`;
}

/** @param {{order: Order, chain: Chain | null, onChange: () => void}} props */
function OrderActions({ order, chain, onChange }) {
  const isStepRunning = order.task?.status === "RUNNING";
  const disabledReason = isStepRunning ? "A step is running. Suspend the order and wait for the step to end." : undefined;
  return html`
    ${order.suspended
      ? html`<${Button} kind="primary" icon="play" role="operator" onClick=${() => resumeOrder(order, onChange)}>Resume<//>`
      : html`<${Button} icon="pause" role="operator" onClick=${() => suspendOrder(order, onChange)}>Suspend<//>`}
    <${Button} icon="configuration" role="operator" disabled=${isStepRunning} title=${disabledReason} onClick=${() => promptAndChangeOrder(order, chain, onChange)}>Change<//>
    <${Button} icon="close" kind="danger" role="operator" disabled=${isStepRunning} title=${disabledReason} onClick=${() => confirmAndRemoveOrder(order, onChange)}>Remove<//>`;
}

/** Why the order is not moving, and what to do. @param {{order: Order}} props */
function OrderNotice({ order: { suspended, failed, stranded, blocked_by, setback_until, node } }) {
  if (suspended && failed) {
    return html`<${Notice} tone="bad"><span>Its step at <b>${node}</b> failed: ${failed.error}</span><span class="soft">Resume to run the step again.</span>
      <${TaskLink} id=${failed.task} short /><//>`;
  }
  if (suspended) return html`<${Notice} tone="warn">Suspended: the order starts no step and does not finish until it is resumed.<//>`;
  if (stranded) return html`<${Notice} tone="bad">The chain no longer has the node <b>${node}</b>. Change the node of the order, or define that node again.<//>`;
  if (setback_until) return html`<${Notice} tone="warn"><span>Its step failed and will be retried at <${TimeWithDayUnlessToday} at=${setback_until} withMillis=${false} />.</span><//>`;
  if (blocked_by) return html`<${Notice} tone="warn">${blocked_by}<//>`;
  return null;
}

/** Whether its step waits for a time: the due time of a step that is on hold may have passed.
 * @param {Order} order */
function isStepDelayed({ task, suspended, blocked_by }) {
  return task?.status === "SCHEDULED" && !suspended && !blocked_by && Date.parse(task.due) > now.value;
}

/** @param {{order: Order}} props */
function OrderProperties({ order }) {
  return html`<${Panel} title="Order">
    <${PropertyList} items=${[
      ["Chain", html`<${Link} to=${screenPaths.chain(order.chain)} class="mono">${order.chain}<//>`],
      ["Node", order.node],
      ["Step", order.task && html`<${TaskLink} id=${order.task.id} short />`],
      ["Step due", isStepDelayed(order) && html`<${TimeWithDayUnlessToday} at=${order.task?.due} withMillis=${false} />`],
      ["Tenant", order.tenant],
      ["Priority", String(order.priority)],
      ["Added", html`<${DateTime} at=${order.created_at} />`],
      ["Planned for", order.planned_at && html`<${DateTime} at=${order.planned_at} />`],
      ["Started", html`<${DateTime} at=${order.started_at} emptyText="not yet" />`],
      ["Tasks", html`<${Link} to=${screenPaths.tasks({ key: order.path, tenant: order.tenant === "default" ? "" : order.tenant })}>all tasks<//>`],
    ]} />
  <//>`;
}

/** @type {import("../../parts/table.js").Column<JournalEvent>[]} */
const COLUMNS = [
  { name: "time", title: "Time", width: 112, onSmallScreens: true, cell: (event) => html`<${TimeWithDayUnlessToday} at=${event.eventId} />` },
  { name: "description", title: "Description", grow: 100, onSmallScreens: true, cell: (event) => html`<span title=${describeEngineEvent(event)}>${describeEngineEvent(event)}</span>` },
  { name: "task", title: "Task", width: 84, cell: (event) => (typeof event.taskId === "string" ? html`<${TaskLink} id=${event.taskId} suffixOnly />` : "") },
  { name: "type", title: "Event", width: 152, cell: (event) => html`<${Link} to=${screenPaths.event(event.eventId)} class="soft">${event.TYPE}<//>` },
];

/** @param {{events: JournalEvent[]}} props */
function OrderEvents({ events }) {
  const newestFirst = [...events].reverse();
  return html`<${Panel} title="Events" flush aside=${pluralize(events.length, "event")}>
    <${Table} label="Events of the order, newest first" columns=${COLUMNS} rows=${newestFirst} id=${(/** @type {JournalEvent} */ event) => String(event.eventId)} />
  <//>`;
}
