// One order: where it stands, its value, the way it has come, and what can be done to it.

import { api } from "../../data/api.js";
import { useFollowed } from "../../data/follow.js";
import { counted } from "../../data/numbers.js";
import { Problem } from "../../data/problem.js";
import { bound } from "../../data/session.js";
import { Badge } from "../../parts/badge.js";
import { Button } from "../../parts/button.js";
import { cli, CopyAs } from "../../parts/copy.js";
import { Facts, Head, Panel } from "../../parts/facts.js";
import { Json } from "../../parts/json.js";
import { EventLink, Link, TaskLink } from "../../parts/link.js";
import { Notice, Shown } from "../../parts/states.js";
import { Table } from "../../parts/table.js";
import { Clock, Full } from "../../parts/time.js";
import { Timeline } from "../../parts/timeline.js";
import { html } from "../../parts/ui.js";
import { useCommands } from "../../shell/commands.js";
import { places } from "../../shell/router.js";
import { ending, own, rows } from "./gantt.js";
import { OrderState } from "./state.js";
import { addressOf, change, remove, resume, suspend } from "./steer.js";

/** @typedef {import("../../data/bodies.js").Order} Order */
/** @typedef {import("../../data/bodies.js").Chain} Chain */
/** @typedef {import("../../data/filter.js").Event} Event */
/** @typedef {{eventId: number, order: Order | null, chain: Chain | null, events: Event[], cut: boolean}} Known */

/** How many of its events are looked at. */
const MOST = 1000;

/** @param {string} path @param {string} tenant @param {AbortSignal} signal
 * @returns {Promise<Known>} */
async function read(path, tenant, signal) {
  const chainPath = path.slice(0, path.lastIndexOf(","));
  const [{ orders }, { chains }, seq] = await Promise.all([
    api.get("/api/v1/orders", { query: { path, tenant, limit: 1 }, signal, exact: true }),
    api.get("/api/v1/chains", { signal }),
    api.get("/api/v1/events", { query: { path, tenant, limit: -MOST }, signal }),
  ]);
  const order = /** @type {Order[]} */ (orders).find((one) => one.path === path) ?? null;
  const all = /** @type {Event[]} */ (seq.eventSnapshots ?? []).reverse();
  const events = own(all, path);
  // One that has arrived is still remembered by its events.
  if (!order && events.length === 0) throw new Problem({ status: 404, detail: `There is no order ${path} of the tenant ${tenant}, and the journal has no events of it.` });
  const chain = /** @type {Chain[]} */ (chains).find((one) => one.path === chainPath) ?? null;
  return { eventId: seq.eventId, order, chain, events, cut: all.length === MOST };
}

/** @param {{params: Record<string, string>, query: Record<string, string>}} props */
export default function Screen({ params, query }) {
  const path = `/${params.path}`;
  const tenant = query.tenant || bound.value || "default";
  const known = useFollowed({ read: (signal) => read(path, tenant, signal), filter: { path }, calm: 400, every: 10_000 }, [path, tenant]);
  return html`<${Shown} of=${known} lines=${10} what="The order could not be loaded">
    ${(/** @type {Known} */ data) => html`<${Detail} path=${path} tenant=${tenant} known=${data} after=${known.reload} />`}<//>`;
}

/** @param {{path: string, tenant: string, known: Known, after: () => void}} props */
function Detail({ path, tenant, known: { order, chain, events, cut }, after }) {
  const end = order ? null : ending(events);
  const named = tenant === "default" ? "" : tenant;
  const of = named ? ["--tenant", named] : [];
  useCommands(order ? [{ title: order.suspended ? "Resume this order" : "Suspend this order", run: () => (order.suspended ? resume(order, after) : suspend(order, after)) }] : []);
  const comma = path.lastIndexOf(",");
  return html`
    <${Head} title=${html`<span class="faint">${path.slice(0, comma)},</span>${path.slice(comma + 1)}`} sub=${order
      ? html`<${OrderState} order=${order} /><span>at ${order.node}</span>`
      : html`<${Badge} tone=${end?.word === "arrived" ? "good" : "off"}>${end?.word === "arrived" ? `Arrived at ${end.node}` : end ? "Removed" : "Gone"}<//>${end && html`<${Full} at=${end.at} />`}<${Link} to=${places.tasks({ key: path, tenant: named })}>all tasks<//>`}>
      ${order && html`<${Actions} order=${order} chain=${chain} after=${after} />`}
      ${order ? html`<${CopyAs} call=${{ path: addressOf(path), query: { tenant: named } }} cli=${cli("orders", "show", path, ...of)} />`
        : html`<${CopyAs} call=${{ path: "/api/v1/events", query: { path, tenant: named, limit: -MOST } }} cli=${cli("tasks", "list", "--key", path, ...of)} />`}
    <//>
    ${order && html`<${Trouble} order=${order} />`}
    ${!order && html`<${Notice}>The order has ended. This page shows the events that the journal still has.<//>`}
    <${Panel} title="Timeline" aside=${cut ? `its newest ${MOST} events` : null}>
      ${events.length === 0 ? html`<p class="soft">The journal has no events of its steps.</p>`
        : html`<div class="gantt"><${Timeline} rows=${rows(events, order !== null)} label=${`Timeline of ${path}, one row per node`} />
          <${Legend} /></div>`}
    <//>
    <div class=${order ? "columns" : "stack"}>
      <div class="stack">
        ${order && html`<${Panel} title="Value"><${Json} value=${order.value ?? null} label="Value" /><//>`}
        <${Happened} events=${events} />
      </div>
      ${order && html`<div class="stack"><${About} order=${order} /></div>`}
    </div>`;
}

function Legend() {
  const keys = [["busy", "step running"], ["good", "succeeded"], ["bad", "failed"], ["warn", "waiting to be retried"], ["off", "suspended"], ["idle", "waiting"]];
  return html`<ul class="gantt-legend">${keys.map(([tone, word]) => html`<li key=${word}><span class=${`swatch ${tone}`}></span>${word}</li>`)}</ul>`;
}

/** @param {{order: Order, chain: Chain | null, after: () => void}} props */
function Actions({ order, chain, after }) {
  const running = order.task?.status === "RUNNING";
  const why = running ? "A step is running. Suspend the order and wait for the step to end." : undefined;
  return html`
    ${order.suspended
      ? html`<${Button} kind="primary" icon="play" role="operator" onClick=${() => resume(order, after)}>Resume<//>`
      : html`<${Button} icon="pause" role="operator" onClick=${() => suspend(order, after)}>Suspend<//>`}
    <${Button} icon="configuration" role="operator" disabled=${running} title=${why} onClick=${() => change(order, chain, after)}>Change<//>
    <${Button} icon="close" kind="danger" role="operator" disabled=${running} title=${why} onClick=${() => remove(order, after)}>Remove<//>`;
}

/** What keeps it, and the way out. @param {{order: Order}} props */
function Trouble({ order: { suspended, failed, stranded, held, setback_until, node } }) {
  if (suspended && failed) {
    return html`<${Notice} tone="bad"><span>Its step at <b>${node}</b> failed: ${failed.error}</span><span class="soft">Resume to run the step again.</span>
      <${TaskLink} id=${failed.task} short /><//>`;
  }
  if (suspended) return html`<${Notice} tone="warn">Suspended: the order starts no step and does not finish until it is resumed.<//>`;
  if (stranded) return html`<${Notice} tone="bad">The chain no longer has the node <b>${node}</b>. Change the node of the order, or define that node again.<//>`;
  if (setback_until) return html`<${Notice} tone="warn"><span>Its step failed and will be retried at <${Clock} at=${setback_until} fine=${false} />.</span><//>`;
  if (held) return html`<${Notice} tone="warn">${held}<//>`;
  return null;
}

/** @param {{order: Order}} props */
function About({ order }) {
  return html`<${Panel} title="Order">
    <${Facts} of=${[
      ["Chain", html`<${Link} to=${places.chain(order.chain)} class="mono">${order.chain}<//>`],
      ["Node", order.node],
      ["Step", order.task && html`<${TaskLink} id=${order.task.id} short />`],
      ["Step begins", order.task?.status === "SCHEDULED" && html`<${Clock} at=${order.task.due} fine=${false} />`],
      ["Tenant", order.tenant],
      ["Priority", String(order.priority)],
      ["Added", html`<${Full} at=${order.created_at} />`],
      ["Planned for", order.planned_at && html`<${Full} at=${order.planned_at} />`],
      ["Started", html`<${Full} at=${order.started_at} none="not yet" />`],
      ["Tasks", html`<${Link} to=${places.tasks({ key: order.path, tenant: order.tenant === "default" ? "" : order.tenant })}>all tasks<//>`],
    ]} />
  <//>`;
}

/** @type {import("../../parts/table.js").Column<Event>[]} */
const COLUMNS = [
  { name: "time", title: "Time", width: 112, narrow: true, cell: (event) => html`<${Clock} at=${event.eventId} />` },
  { name: "type", title: "Event", width: 152, narrow: true, cell: (event) => event.TYPE },
  { name: "what", title: "Description", grow: 55, narrow: true, cell: (event) => html`<span class="soft">${says(event)}</span>` },
  { name: "task", title: "Task", grow: 45, cell: (event) => (typeof event.taskId === "string" ? html`<${TaskLink} id=${event.taskId} short />` : "") },
  { name: "id", title: "Id", width: 150, right: true, cell: (event) => html`<${EventLink} id=${event.eventId} />` },
];

/** @param {Event} event */
function says(event) {
  const transition = /** @type {{TYPE?: string, returnCode?: number} | undefined} */ (event.nodeTransition);
  if (transition) return `${transition.TYPE}${transition.returnCode === undefined ? "" : `, return code ${transition.returnCode}`}`;
  if (typeof event.fromNodeId === "string") return `${event.fromNodeId} → ${event.nodeId}`;
  return typeof event.nodeId === "string" ? `at ${event.nodeId}` : "";
}

/** @param {{events: Event[]}} props */
function Happened({ events }) {
  const newest = [...events].reverse();
  return html`<${Panel} title="Events" flush aside=${counted(events.length, "event")}>
    <${Table} label="Events of the order, newest first" columns=${COLUMNS} rows=${newest} id=${(/** @type {Event} */ event) => String(event.eventId)} />
  <//>`;
}
