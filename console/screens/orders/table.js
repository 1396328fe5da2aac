// A live table of orders.

import { api } from "../../data/api.js";
import { useLiveData } from "../../data/live-data.js";
import { pluralize } from "../../data/numbers.js";
import { Link } from "../../parts/link.js";
import { stringifyExact } from "../../parts/json.js";
import { LiveView } from "../../parts/states.js";
import { Table } from "../../parts/table.js";
import { RelativeTime } from "../../parts/time.js";
import { html, useEffect, useState } from "../../parts/ui.js";
import { navigate, screenPaths } from "../../shell/router.js";
import { OrderStateBadge, describeOrderState } from "./order-state.js";

/** @typedef {import("../../data/api-types.js").Order} Order */
/** @typedef {{eventId: number, orders: Order[], hasMore: boolean}} LoadedOrders */

/** Page size, and maximum orders: longer lists need a filter. */
const PAGE_SIZE = 500;
const MAX_ORDERS = 5000;
const MAX_VALUE_CHARS = 160;

/** @param {{path: string | undefined, tenant: string | undefined}} filter @param {number} maxOrders @param
 * {AbortSignal} signal
 * @returns {Promise<LoadedOrders>} */
async function readOrders({ path, tenant }, maxOrders, signal) {
  const first = await api.get("/api/v1/orders", { query: { path, tenant, limit: PAGE_SIZE }, signal, exactNumbers: true });
  const orders = first.orders;
  let { next } = first;
  while (next !== null && orders.length < maxOrders) {
    const page = await api.get("/api/v1/orders", { query: { path, tenant, limit: PAGE_SIZE, cursor: next }, signal, exactNumbers: true });
    orders.push(...page.orders);
    next = page.next;
  }
  return { eventId: first.eventId, orders, hasMore: next !== null };
}

/** @param {{path?: string, tenant?: string, node?: string, state?: string, id?: string, showChain?: boolean, fill?: boolean,
 *   empty: (isEmpty: boolean) => import("../../parts/ui.js").Children, onCount?: (text: string) => void}} props `showChain` shows the columns chain, value and tenant; `empty` gets whether there are no orders at all */
export function OrderTable({ path, tenant, node, state, id, showChain = false, fill = false, empty, onCount }) {
  const [maxOrders, setMaxOrders] = useState(PAGE_SIZE);
  const live = useLiveData({
    read: (signal) => readOrders({ path, tenant }, maxOrders, signal),
    filter: { types: ["OrderEvent", "FileBasedEvent", "JobChainEvent"], path },
    minInterval: 800,
    pollInterval: 5000,
  }, [path, tenant, maxOrders]);
  const loadedOrders = live.data?.orders ?? [];
  const rows = loadedOrders.filter((order) => (!node || order.node === node) && (!state || describeOrderState(order).label === state) && (!id || order.id.includes(id)));
  const hasMore = live.data?.hasMore === true;
  useEffect(() => {
    if (live.data) onCount?.(orderCountText(rows.length, loadedOrders.length, hasMore));
  }, [rows.length, loadedOrders.length, hasMore, live.data !== null]);
  return html`<${LiveView} live=${live} errorTitle="The orders could not be loaded">${() => html`
    <${Table} fill=${fill} label="Orders" columns=${orderColumns(showChain)} rows=${rows} id=${(/** @type {Order} */ order) => `${order.path} ${order.tenant}`}
      onOpen=${(/** @type {Order} */ order) => navigate(screenPaths.order(order.path, order.tenant))}
      onEnd=${hasMore && maxOrders < MAX_ORDERS ? () => setMaxOrders(maxOrders + PAGE_SIZE) : undefined} empty=${empty(loadedOrders.length === 0)} />`}<//>`;
}

/** @param {number} shown @param {number} loaded @param {boolean} hasMore */
function orderCountText(shown, loaded, hasMore) {
  const loadedText = `${pluralize(loaded, "order")}${hasMore ? " and more" : ""}`;
  return shown === loaded ? loadedText : `${shown} of ${loadedText}`;
}

/** @param {boolean} showChain
 * @returns {import("../../parts/table.js").Column<Order>[]} */
function orderColumns(showChain) {
  return [
    { name: "id", title: "Order", width: 160, onSmallScreens: true, cell: (order) => html`<${Link} to=${screenPaths.order(order.path, order.tenant)} class="mono" title=${order.path}>${order.id}<//>` },
    { name: "chain", title: "Chain", grow: 26, hidden: !showChain, cell: (order) => html`<${Link} to=${screenPaths.chain(order.chain)}>${order.chain}<//>` },
    { name: "node", title: "Node", width: 104, onSmallScreens: true, cell: (order) => order.node },
    { name: "state", title: "State", width: 116, onSmallScreens: true, cell: (order) => html`<${OrderStateBadge} order=${order} />` },
    { name: "reason", title: "Reason", grow: 48, cell: reasonCell },
    { name: "time", title: "Time", width: 92, cell: dueOrStartTimeCell },
    { name: "value", title: "Value", grow: 26, hidden: !showChain, cell: (order) => html`<span class="mono soft">${valueText(order.value)}</span>` },
    { name: "tenant", title: "Tenant", width: 84, hidden: !showChain, cell: (order) => html`<span class="faint">${order.tenant}</span>` },
  ];
}

/** Why the order is not moving. @param {Order} order */
function reasonCell(order) {
  const { reason, label } = describeOrderState(order);
  return label === "Waiting" || label === "Planned" ? "" : html`<span class="soft" title=${reason}>${reason}</span>`;
}

/** The time that the order waits for, or its start. @param {Order} order */
function dueOrStartTimeCell(order) {
  const { setback_until, planned_at, started_at, created_at } = order;
  const waitsUntil = setback_until || (started_at ? "" : planned_at);
  return html`<${RelativeTime} at=${waitsUntil || started_at || created_at} />`;
}

/** @param {unknown} value */
function valueText(value) {
  if (value === null || value === undefined) return "";
  const text = stringifyExact(value).replace(/\s*\n\s*/g, " ");
  return text.length > MAX_VALUE_CHARS ? `${text.slice(0, MAX_VALUE_CHARS)}…` : text;
}
