// All orders that are on their way.

import { bound } from "../../data/session.js";
import { cli, CopyAs } from "../../parts/copy.js";
import { Head } from "../../parts/facts.js";
import { Filters } from "../../parts/filters.js";
import { Link } from "../../parts/link.js";
import { Empty } from "../../parts/states.js";
import { html, useState } from "../../parts/ui.js";
import { STATES } from "./state.js";
import { Orders } from "./table.js";

/** @param {{query: Record<string, string>}} props */
export default function Screen({ query: { path, tenant, state, node, id, ...rest } }) {
  const [told, setTold] = useState("");
  const query = { path, tenant, state, node, id, ...rest };
  const filtered = [path, tenant, state, node, id].some(Boolean);
  return html`
    <${Head} title="Orders" sub=${told && html`<span>${told}</span><${Link} to="/chains">chains<//>`}>
      <${CopyAs} call=${{ path: "/api/v1/orders", query: { path, tenant } }} cli=${cli("orders", "list", path ?? "/")} />
    <//>
    <${Filters} query=${query} fields=${[
      { name: "path", label: "Chain or folder", hint: "/publish/", width: 170 },
      { name: "node", label: "Node", hint: "deploy", width: 120 },
      { name: "state", label: "State", choices: STATES },
      { name: "id", label: "Id", hint: "part of it", width: 110 },
      ...(bound.value === null ? [{ name: "tenant", label: "Tenant", hint: "default", width: 110 }] : []),
    ]} />
    <${Orders} tall chain path=${path} tenant=${tenant} state=${state} node=${node} id=${id} onCount=${setTold}
      empty=${(/** @type {boolean} */ none) => html`<${Nothing} filtered=${filtered} none=${none} />`} />`;
}

/** @param {{filtered: boolean, none: boolean}} props */
function Nothing({ filtered, none }) {
  if (filtered) return html`<${Empty} title=${none ? "No orders" : "No order matches"} icon="filter"><p>Clear a filter to see other orders. Finished orders are not listed here.</p><//>`;
  return html`<${Empty} title="No orders" icon="order">
    <p>Add one on the page of its chain, or with <code>${cli("orders", "add", "/publish/article,117")}</code>. Events and schedules add orders, too. Finished orders are not listed here.</p><//>`;
}
