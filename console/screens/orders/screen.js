// The list of unfinished orders.

import { boundTenant } from "../../data/session.js";
import { cliCommand, CopyAsMenu } from "../../parts/copy.js";
import { ScreenHeader } from "../../parts/panel.js";
import { FilterBar } from "../../parts/filters.js";
import { Link } from "../../parts/link.js";
import { EmptyState } from "../../parts/states.js";
import { html, useState } from "../../parts/ui.js";
import { ORDER_STATE_LABELS } from "./order-state.js";
import { OrderTable } from "./table.js";

/** @param {{query: Record<string, string>}} props */
export default function OrdersScreen({ query: { path, tenant, state, node, id, ...rest } }) {
  const [countText, setCountText] = useState("");
  const query = { path, tenant, state, node, id, ...rest };
  const isFiltered = [path, tenant, state, node, id].some(Boolean);
  return html`
    <${ScreenHeader} title="Orders" subtitle=${countText && html`<span>${countText}</span><${Link} to="/chains">chains<//>`}>
      <${CopyAsMenu} call=${{ path: "/api/v1/orders", query: { path, tenant } }} cli=${cliCommand("orders", "list", path ?? "/")} />
    <//>
    <${FilterBar} query=${query} fields=${[
      { name: "path", label: "Chain or folder", hint: "/publish/", width: 170 },
      { name: "node", label: "Node", hint: "deploy", width: 120 },
      { name: "state", label: "State", choices: ORDER_STATE_LABELS },
      { name: "id", label: "Id", hint: "part of it", width: 110 },
      ...(boundTenant.value === null ? [{ name: "tenant", label: "Tenant", hint: "default", width: 110 }] : []),
    ]} />
    <${OrderTable} fill showChain path=${path} tenant=${tenant} state=${state} node=${node} id=${id} onCount=${setCountText}
      empty=${(/** @type {boolean} */ isEmpty) => html`<${NoOrders} isFiltered=${isFiltered} isEmpty=${isEmpty} />`} />`;
}

/** @param {{isFiltered: boolean, isEmpty: boolean}} props */
function NoOrders({ isFiltered, isEmpty }) {
  if (isFiltered) return html`<${EmptyState} title=${isEmpty ? "No orders" : "No order matches"} icon="filter"><p>Clear a filter to see other orders. Finished orders are not listed here.</p><//>`;
  return html`<${EmptyState} title="No orders" icon="order">
    <p>Add one on the page of its chain, or with <code>${cliCommand("orders", "add", "/publish/article,117")}</code>. Events and schedules add orders, too. Finished orders are not listed here.</p><//>`;
}
