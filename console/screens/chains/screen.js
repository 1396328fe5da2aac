// All chains, each with how many orders are where.

import { api } from "../../data/api.js";
import { useFollowed } from "../../data/follow.js";
import { brief, counted } from "../../data/numbers.js";
import { cli, CopyAs } from "../../parts/copy.js";
import { Head } from "../../parts/facts.js";
import { Filters } from "../../parts/filters.js";
import { Link } from "../../parts/link.js";
import { Empty, Shown } from "../../parts/states.js";
import { Table } from "../../parts/table.js";
import { classes, html } from "../../parts/ui.js";
import { go, places } from "../../shell/router.js";
import { ChainState } from "./state.js";

/** @typedef {import("../../data/bodies.js").Chain} Chain */

/** How many nodes of a chain a row shows. */
const MOST = 8;

/** @type {[string, string][]} */
const STATES = [["stopped", "Stopped"], ["held", "Paused or blocked"], ["stranded", "With orphaned orders"], ["busy", "With orders"]];

/** @param {Chain} chain @param {string} state */
function isIn({ state: set, rules, stranded, orders, nodes }, state) {
  if (state === "stopped") return set === "stopped" || nodes.some((node) => node.action === "stop");
  if (state === "held") return rules.length > 0;
  if (state === "stranded") return stranded.length > 0;
  return state !== "busy" || (orders ?? 1) > 0;
}

/** @param {{query: Record<string, string>}} props */
export default function Chains({ query }) {
  const known = useFollowed({
    read: (signal) => /** @type {Promise<{eventId: number, chains: Chain[]}>} */ (api.get("/api/v1/chains", { signal })),
    filter: { types: ["OrderEvent", "JobChainEvent", "FileBasedEvent"] },
    every: 5000,
  }, []);
  const chains = known.data?.chains ?? [];
  const orders = chains.reduce((sum, chain) => sum + (chain.orders ?? 0), 0);
  const part = (query.path ?? "").toLowerCase();
  const rows = chains.filter((chain) => chain.path.toLowerCase().includes(part) && isIn(chain, query.state ?? ""));
  return html`
    <${Head} title="Chains" sub=${known.data && html`<span>${counted(chains.length, "chain")}</span><${Link} to="/orders">${counted(orders, "order")} <//>`}>
      <${CopyAs} call=${{ path: "/api/v1/chains" }} cli=${cli("chains")} />
    <//>
    <${Filters} query=${query} fields=${[{ name: "path", label: "Path", hint: "part of it", width: 200 }, { name: "state", label: "State", choices: STATES }]} />
    <${Shown} of=${known} lines=${8} what="The chains could not be loaded">${() => html`
      <${Table} tall label="Chains" columns=${COLUMNS} rows=${rows} id=${(/** @type {Chain} */ chain) => chain.path}
        onOpen=${(/** @type {Chain} */ chain) => go(places.chain(chain.path))} empty=${html`<${Nothing} none=${chains.length === 0} />`} />`}<//>`;
}

/** @param {{none: boolean}} props */
function Nothing({ none }) {
  if (!none) return html`<${Empty} title="No chain matches" icon="filter"><p>Clear a filter to see more.</p><//>`;
  return html`<${Empty} title="There are no chains" icon="chain">
    <p>Define them under <code>chains:</code> in the configuration. Changes are loaded within a second.</p><//>`;
}

/** @type {import("../../parts/table.js").Column<Chain>[]} */
const COLUMNS = [
  { name: "path", title: "Chain", grow: 26, narrow: true, cell: (chain) => html`<${Link} to=${places.chain(chain.path)} class="mono">${chain.path}<//>` },
  { name: "state", title: "State", width: 124, narrow: true, cell: (chain) => html`<${ChainState} chain=${chain} />` },
  { name: "orders", title: "Orders", width: 76, right: true, narrow: true, cell: (chain) => (chain.orders === null ? html`<span class="faint">–</span>` : brief(chain.orders)) },
  { name: "nodes", title: "Nodes", grow: 74, cell: (chain) => html`<${Nodes} chain=${chain} />` },
];

/** @param {{chain: Chain}} props */
function Nodes({ chain: { nodes } }) {
  return html`<span class="node-row">
    ${nodes.slice(0, MOST).map(({ id, end, action, orders }) => html`<span key=${id} class=${classes("node-chip", end && "end", action)} title=${`${id}: ${counted(orders ?? 0, "order")}${action === "process" ? "" : `, ${action}`}`}>
      ${id}${action === "stop" ? " ■" : action === "next_state" ? " »" : ""}${orders ? html` <b>${brief(orders)}</b>` : ""}</span>`)}
    ${nodes.length > MOST && html`<span class="faint">and ${nodes.length - MOST} more</span>`}
  </span>`;
}
