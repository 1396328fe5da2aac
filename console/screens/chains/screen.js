// The list of chains with order counts per node.

import { api } from "../../data/api.js";
import { useLiveData } from "../../data/live-data.js";
import { formatCompactNumber, pluralize } from "../../data/numbers.js";
import { cliCommand, CopyAsMenu } from "../../parts/copy.js";
import { ScreenHeader } from "../../parts/panel.js";
import { FilterBar } from "../../parts/filters.js";
import { Link } from "../../parts/link.js";
import { EmptyState, LiveView } from "../../parts/states.js";
import { Table } from "../../parts/table.js";
import { classNames, html } from "../../parts/ui.js";
import { navigate, screenPaths } from "../../shell/router.js";
import { ChainStateBadge } from "./chain-state.js";

/** @typedef {import("../../data/api-types.js").Chain} Chain */

/** Maximum nodes shown per chain. */
const MAX_SHOWN_CHAIN_NODES = 8;

/** @type {[string, string][]} */
const CHAIN_STATE_CHOICES = [["stopped", "Stopped"], ["held", "Paused or blocked"], ["stranded", "With stranded orders"], ["busy", "With orders"]];

/** @param {Chain} chain @param {string} state */
function matchesChainState({ state: chainState, rules, stranded, orders, nodes }, state) {
  if (state === "stopped") return chainState === "stopped" || nodes.some((node) => node.action === "stop");
  if (state === "held") return rules.length > 0;
  if (state === "stranded") return stranded.length > 0;
  return state !== "busy" || (orders ?? 1) > 0;
}

/** @param {{query: Record<string, string>}} props */
export default function Chains({ query }) {
  const live = useLiveData({
    read: (signal) => /** @type {Promise<{eventId: number, chains: Chain[]}>} */ (api.get("/api/v1/chains", { signal })),
    filter: { types: ["OrderEvent", "JobChainEvent", "FileBasedEvent"] },
    pollInterval: 5000,
  }, []);
  const chains = live.data?.chains ?? [];
  const orderCount = chains.reduce((sum, chain) => sum + (chain.orders ?? 0), 0);
  const pathPart = (query.path ?? "").toLowerCase();
  const rows = chains.filter((chain) => chain.path.toLowerCase().includes(pathPart) && matchesChainState(chain, query.state ?? ""));
  return html`
    <${ScreenHeader} title="Chains" subtitle=${live.data && html`<span>${pluralize(chains.length, "chain")}</span><${Link} to="/orders">${pluralize(orderCount, "order")} <//>`}>
      <${CopyAsMenu} call=${{ path: "/api/v1/chains" }} cli=${cliCommand("chains")} />
    <//>
    <${FilterBar} query=${query} fields=${[{ name: "path", label: "Path", hint: "part of it", width: 200 }, { name: "state", label: "State", choices: CHAIN_STATE_CHOICES }]} />
    <${LiveView} live=${live} lines=${8} errorTitle="The chains could not be loaded">${() => html`
      <${Table} fill label="Chains" columns=${COLUMNS} rows=${rows} id=${(/** @type {Chain} */ chain) => chain.path}
        onOpen=${(/** @type {Chain} */ chain) => navigate(screenPaths.chain(chain.path))} empty=${html`<${NoChains} isEmpty=${chains.length === 0} />`} />`}<//>`;
}

/** @param {{isEmpty: boolean}} props */
function NoChains({ isEmpty }) {
  if (!isEmpty) return html`<${EmptyState} title="No chain matches" icon="filter"><p>Clear a filter to see more.</p><//>`;
  return html`<${EmptyState} title="There are no chains" icon="chain">
    <p>Define them under <code>chains:</code> in the configuration. Changes are loaded within a second.</p><//>`;
}

/** @type {import("../../parts/table.js").Column<Chain>[]} */
const COLUMNS = [
  { name: "path", title: "Chain", grow: 26, onSmallScreens: true, cell: (chain) => html`<${Link} to=${screenPaths.chain(chain.path)} class="mono">${chain.path}<//>` },
  { name: "state", title: "State", width: 124, onSmallScreens: true, cell: (chain) => html`<${ChainStateBadge} chain=${chain} />` },
  { name: "orders", title: "Orders", width: 76, alignRight: true, onSmallScreens: true, cell: (chain) => (chain.orders === null ? html`<span class="faint">–</span>` : formatCompactNumber(chain.orders)) },
  { name: "nodes", title: "Nodes", grow: 74, cell: (chain) => html`<${ChainNodeChips} chain=${chain} />` },
];

/** @param {{chain: Chain}} props */
function ChainNodeChips({ chain: { nodes } }) {
  return html`<span class="node-row">
    ${nodes.slice(0, MAX_SHOWN_CHAIN_NODES).map(({ id, end, action, orders }) => html`<span key=${id} class=${classNames("node-chip", end && "end", action)} title=${`${id}: ${pluralize(orders ?? 0, "order")}${action === "process" ? "" : `, ${action}`}`}>
      ${id}${action === "stop" ? " ■" : action === "next_state" ? " »" : ""}${orders ? html` <b>${formatCompactNumber(orders)}</b>` : ""}</span>`)}
    ${nodes.length > MAX_SHOWN_CHAIN_NODES && html`<span class="faint">and ${nodes.length - MAX_SHOWN_CHAIN_NODES} more</span>`}
  </span>`;
}
