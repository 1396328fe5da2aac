// A list of orders, by path, kept current.

import { api } from "../../data/api.js";
import { useFollowed } from "../../data/follow.js";
import { counted } from "../../data/numbers.js";
import { Link } from "../../parts/link.js";
import { stringify } from "../../parts/json.js";
import { Shown } from "../../parts/states.js";
import { Table } from "../../parts/table.js";
import { Ago } from "../../parts/time.js";
import { html, useEffect, useState } from "../../parts/ui.js";
import { go, places } from "../../shell/router.js";
import { OrderState, stateOf } from "./state.js";

/** @typedef {import("../../data/bodies.js").Order} Order */
/** @typedef {{eventId: number, orders: Order[], more: boolean}} Known */

/** How many are read at a time, and at most: lists that long are narrowed by their path. */
const STEP = 500;
const MOST = 5000;
const MOST_TEXT = 160;

/** @param {{path: string | undefined, tenant: string | undefined}} wish @param {number} most @param {AbortSignal} signal
 * @returns {Promise<Known>} */
async function read({ path, tenant }, most, signal) {
  const first = await api.get("/api/v1/orders", { query: { path, tenant, limit: STEP }, signal, exact: true });
  const orders = first.orders;
  let { next } = first;
  while (next !== null && orders.length < most) {
    const page = await api.get("/api/v1/orders", { query: { path, tenant, limit: STEP, cursor: next }, signal, exact: true });
    orders.push(...page.orders);
    next = page.next;
  }
  return { eventId: first.eventId, orders, more: next !== null };
}

/** @param {{path?: string, tenant?: string, node?: string, state?: string, id?: string, chain?: boolean, tall?: boolean,
 *   empty: (none: boolean) => import("../../parts/ui.js").Children, onCount?: (text: string) => void}} props `chain` is
 *   whether the column of the chain is needed; `empty` gets whether there are none at all */
export function Orders({ path, tenant, node, state, id, chain = false, tall = false, empty, onCount }) {
  const [most, setMost] = useState(STEP);
  const known = useFollowed({
    read: (signal) => read({ path, tenant }, most, signal),
    filter: { types: ["OrderEvent", "FileBasedEvent", "JobChainEvent"], path },
    calm: 800,
    every: 5000,
  }, [path, tenant, most]);
  const all = known.data?.orders ?? [];
  const rows = all.filter((order) => (!node || order.node === node) && (!state || stateOf(order).word === state) && (!id || order.id.includes(id)));
  const more = known.data?.more === true;
  useEffect(() => {
    if (known.data) onCount?.(told(rows.length, all.length, more));
  }, [rows.length, all.length, more, known.data !== null]);
  return html`<${Shown} of=${known} what="The orders could not be loaded">${() => html`
    <${Table} tall=${tall} label="Orders" columns=${columns(chain)} rows=${rows} id=${(/** @type {Order} */ order) => `${order.path} ${order.tenant}`}
      onOpen=${(/** @type {Order} */ order) => go(places.order(order.path, order.tenant))}
      onEnd=${more && most < MOST ? () => setMost(most + STEP) : undefined} empty=${empty(all.length === 0)} />`}<//>`;
}

/** @param {number} shown @param {number} all @param {boolean} more */
function told(shown, all, more) {
  const read = `${counted(all, "order")}${more ? " and more" : ""}`;
  return shown === all ? read : `${shown} of ${read}`;
}

/** @param {boolean} chain
 * @returns {import("../../parts/table.js").Column<Order>[]} */
function columns(chain) {
  return [
    { name: "id", title: "Order", grow: 18, narrow: true, cell: (order) => html`<${Link} to=${places.order(order.path, order.tenant)} class="mono" title=${order.path}>${order.id}<//>` },
    { name: "chain", title: "Chain", grow: 22, hidden: !chain, cell: (order) => html`<${Link} to=${places.chain(order.chain)}>${order.chain}<//>` },
    { name: "node", title: "Node", grow: 20, narrow: true, cell: (order) => order.node },
    { name: "state", title: "State", width: 124, narrow: true, cell: (order) => html`<${OrderState} order=${order} />` },
    { name: "when", title: "Time", width: 104, cell: when },
    { name: "value", title: "Value", grow: 38, cell: (order) => html`<span class="mono soft">${text(order.value)}</span>` },
    { name: "tenant", title: "Tenant", width: 90, cell: (order) => html`<span class="faint">${order.tenant}</span>` },
  ];
}

/** What its state is waiting for, or since when it is on its way. @param {Order} order */
function when(order) {
  const { setback_until, planned_at, started_at, created_at } = order;
  const coming = setback_until || (started_at ? "" : planned_at);
  return html`<${Ago} at=${coming || started_at || created_at} />`;
}

/** @param {unknown} value */
function text(value) {
  if (value === null || value === undefined) return "";
  const whole = stringify(value).replace(/\s*\n\s*/g, " ");
  return whole.length > MOST_TEXT ? `${whole.slice(0, MOST_TEXT)}…` : whole;
}
