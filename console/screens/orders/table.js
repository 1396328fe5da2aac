// A live table of orders.

import { api } from "../../data/api.js";
import { useLiveData } from "../../data/live-data.js";
import { pluralize } from "../../data/numbers.js";
import { Link } from "../../parts/link.js";
import { stringifyExact } from "../../parts/json.js";
import { LiveView } from "../../parts/states.js";
import { Table } from "../../parts/table.js";
import { Ago } from "../../parts/time.js";
import { html, useEffect, useState } from "../../parts/ui.js";
import { navigate, screenPaths } from "../../shell/router.js";
import { OrderStateBadge, describeOrderState } from "./state.js";

/** @typedef {import("../../data/api-types.js").Order} Order */
/** @typedef {{eventId: number, orders: Order[], more: boolean}} LoadedOrders */

/** Page size, and maximum orders: longer lists need a filter. */
const PAGE_SIZE = 500;
const MAX_ORDERS = 5000;
const MAX_TEXT = 160;

/** @param {{path: string | undefined, tenant: string | undefined}} wish @param {number} maxOrders @param
 * {AbortSignal} signal
 * @returns {Promise<LoadedOrders>} */
async function readOrders({ path, tenant }, maxOrders, signal) {
  const first = await api.get("/api/v1/orders", { query: { path, tenant, limit: PAGE_SIZE }, signal, exact: true });
  const orders = first.orders;
  let { next } = first;
  while (next !== null && orders.length < maxOrders) {
    const page = await api.get("/api/v1/orders", { query: { path, tenant, limit: PAGE_SIZE, cursor: next }, signal, exact: true });
    orders.push(...page.orders);
    next = page.next;
  }
  return { eventId: first.eventId, orders, more: next !== null };
}

/** @param {{path?: string, tenant?: string, node?: string, state?: string, id?: string, chain?: boolean, fill?: boolean,
 *   empty: (none: boolean) => import("../../parts/ui.js").Children, onCount?: (text: string) => void}} props `chain` shows the columns chain, value and tenant; `empty` gets whether there are no orders at all */
export function OrderTable({ path, tenant, node, state, id, chain = false, fill = false, empty, onCount }) {
  const [maxOrders, setMaxOrders] = useState(PAGE_SIZE);
  const live = useLiveData({
    read: (signal) => readOrders({ path, tenant }, maxOrders, signal),
    filter: { types: ["OrderEvent", "FileBasedEvent", "JobChainEvent"], path },
    minInterval: 800,
    pollInterval: 5000,
  }, [path, tenant, maxOrders]);
  const all = live.data?.orders ?? [];
  const rows = all.filter((order) => (!node || order.node === node) && (!state || describeOrderState(order).label === state) && (!id || order.id.includes(id)));
  const more = live.data?.more === true;
  useEffect(() => {
    if (live.data) onCount?.(countText(rows.length, all.length, more));
  }, [rows.length, all.length, more, live.data !== null]);
  return html`<${LiveView} data=${live} errorTitle="The orders could not be loaded">${() => html`
    <${Table} fill=${fill} label="Orders" columns=${orderColumns(chain)} rows=${rows} id=${(/** @type {Order} */ order) => `${order.path} ${order.tenant}`}
      onOpen=${(/** @type {Order} */ order) => navigate(screenPaths.order(order.path, order.tenant))}
      onEnd=${more && maxOrders < MAX_ORDERS ? () => setMaxOrders(maxOrders + PAGE_SIZE) : undefined} empty=${empty(all.length === 0)} />`}<//>`;
}

/** @param {number} shown @param {number} all @param {boolean} more */
function countText(shown, all, more) {
  const read = `${pluralize(all, "order")}${more ? " and more" : ""}`;
  return shown === all ? read : `${shown} of ${read}`;
}

/** @param {boolean} chain
 * @returns {import("../../parts/table.js").Column<Order>[]} */
function orderColumns(chain) {
  return [
    { name: "id", title: "Order", width: 160, narrow: true, cell: (order) => html`<${Link} to=${screenPaths.order(order.path, order.tenant)} class="mono" title=${order.path}>${order.id}<//>` },
    { name: "chain", title: "Chain", grow: 26, hidden: !chain, cell: (order) => html`<${Link} to=${screenPaths.chain(order.chain)}>${order.chain}<//>` },
    { name: "node", title: "Node", width: 104, narrow: true, cell: (order) => order.node },
    { name: "state", title: "State", width: 116, narrow: true, cell: (order) => html`<${OrderStateBadge} order=${order} />` },
    { name: "reason", title: "Reason", grow: 48, cell: reasonCell },
    { name: "when", title: "Time", width: 92, cell: timeCell },
    { name: "value", title: "Value", grow: 26, hidden: !chain, cell: (order) => html`<span class="mono soft">${valueText(order.value)}</span>` },
    { name: "tenant", title: "Tenant", width: 84, hidden: !chain, cell: (order) => html`<span class="faint">${order.tenant}</span>` },
  ];
}

/** Why the order is not moving. @param {Order} order */
function reasonCell(order) {
  const { why, label } = describeOrderState(order);
  return label === "Waiting" || label === "Planned" ? "" : html`<span class="soft" title=${why}>${why}</span>`;
}

/** The time that the order waits for, or its start. @param {Order} order */
function timeCell(order) {
  const { setback_until, planned_at, started_at, created_at } = order;
  const coming = setback_until || (started_at ? "" : planned_at);
  return html`<${Ago} at=${coming || started_at || created_at} />`;
}

/** @param {unknown} value */
function valueText(value) {
  if (value === null || value === undefined) return "";
  const whole = stringifyExact(value).replace(/\s*\n\s*/g, " ");
  return whole.length > MAX_TEXT ? `${whole.slice(0, MAX_TEXT)}…` : whole;
}
