// One chain: its graph, node actions, state, rules and orders.

import { api, encodeOrderOrChainPath } from "../../data/api.js";
import { useLiveData } from "../../data/live-data.js";
import { pluralize } from "../../data/numbers.js";
import { boundTenant } from "../../data/session.js";
import { ToneIcon } from "../../parts/badge.js";
import { Button } from "../../parts/button.js";
import { cliCommand, CopyAsMenu } from "../../parts/copy.js";
import { promptUser } from "../../parts/prompt.js";
import { ScreenHeader, Panel } from "../../parts/panel.js";
import { Link } from "../../parts/link.js";
import { RuleButtons, RuleList } from "../../parts/rules.js";
import { EmptyState, Notice, LiveView } from "../../parts/states.js";
import { runWithToast } from "../../parts/actions.js";
import { html, useState } from "../../parts/ui.js";
import { setQuery } from "../../shell/router.js";
import { promptAndAddOrder } from "../orders/commands.js";
import { OrderTable } from "../orders/table.js";
import { ChainGraph } from "./graph.js";
import { SelectedChainNode } from "./node.js";
import { ChainStateBadge } from "./chain-state.js";

/** @typedef {import("../../data/api-types.js").Chain} Chain */

/** @param {{params: Record<string, string>, query: Record<string, string>}} props */
export default function ChainScreen({ params, query }) {
  const path = `/${params.path}`;
  const url = `/api/v1/chains/${encodeOrderOrChainPath(path)}`;
  const live = useLiveData({
    read: (signal) => /** @type {Promise<Chain & {eventId: number}>} */ (api.get(url, { signal })),
    filter: { types: ["OrderEvent", "JobChainEvent", "FileBasedEvent"], path },
    minInterval: 500,
    pollInterval: 5000,
  }, [path]);
  return html`<${LiveView} live=${live} lines=${10} errorTitle="The chain could not be loaded">
    ${(/** @type {Chain} */ chain) => html`<${ChainDetail} chain=${chain} url=${url} selectedId=${query.node} onChange=${live.reload} />`}<//>`;
}

/** @param {{chain: Chain, url: string, selectedId: string | undefined, onChange: () => void}} props */
function ChainDetail({ chain, url, selectedId, onChange }) {
  const { path, defined, orders, stranded, rules } = chain;
  const [countText, setCountText] = useState("");
  const ruleTarget = { space: /** @type {const} */ ("chain"), name: path };
  const selectedNode = chain.nodes.find((candidate) => candidate.id === selectedId);
  const stopTexts = describeStoppedParts(chain);
  const strandedCount = stranded.reduce((sum, node) => sum + node.orders, 0);
  return html`
    <${ScreenHeader} title=${path} subtitle=${html`<${ChainStateBadge} chain=${chain} />${orders !== null && html`<span>${pluralize(orders, "order")}</span>`}
      <span>${pluralize(chain.nodes.length, "node")}</span>`}>
      ${defined && html`<${Button} kind="primary" icon="order" role="operator" onClick=${() => promptAndAddOrder(chain)}>Add an order<//>`}
      ${defined && boundTenant.value === null && html`<${StopStartButton} chain=${chain} url=${url} onChange=${onChange} />`}
      <${RuleButtons} target=${ruleTarget} rules=${rules} onChange=${onChange} />
      <${CopyAsMenu} call=${{ path: url }} cli=${cliCommand("chains", "show", path)} />
    <//>
    ${!defined && html`<${Notice} tone="warn">This chain is no longer defined. Its rules are kept, and its orders wait until it is defined again.<//>`}
    ${strandedCount > 0 && html`<${Notice} tone="bad"><span>${pluralize(strandedCount, "order")} ${strandedCount === 1 ? "is" : "are"} at nodes that the chain no longer has:
      ${stranded.map(({ node, orders }) => `${node} (${orders})`).join(", ")}. Move them, or define the nodes again.</span>
      <${Link} to=${`/orders?path=${encodeURIComponent(path)}&state=Stranded`}>Show them<//><//>`}
    ${defined && html`<${Panel} title="Graph" flush aside=${html`<span class="graph-key next">next</span><span class="graph-key error">on error</span>`}>
      <${ChainGraph} chain=${chain} selectedId=${selectedNode?.id} onSelect=${(/** @type {string} */ id) => setQuery({ node: id === selectedId ? null : id })} />
    <//>`}
    <div class="columns">
      <div class="stack">
        <${Panel} title=${selectedNode ? `Orders at ${selectedNode.id}` : "Orders"} flush aside=${countText}>
          <${OrderTable} path=${path} node=${selectedNode?.id} onCount=${setCountText}
            empty=${(/** @type {boolean} */ isEmpty) => html`<${EmptyState} title=${isEmpty ? "No orders" : `No orders at ${selectedNode?.id}`} icon="order">
              <p>New orders appear here.</p><//>`} />
        <//>
      </div>
      <div class="stack">
        ${selectedNode && html`<${SelectedChainNode} key=${selectedNode.id} chain=${chain} node=${selectedNode} onChange=${onChange} />`}
        ${!selectedNode && chain.nodes.length > 0 && html`<${Panel} title="Nodes"><p class="soft">Select a node in the graph to see and change its action.</p><//>`}
        <${Panel} title="Pauses and blocks">
          ${stopTexts.length > 0 && html`<ul class="stops">${stopTexts.map((text) => html`<li key=${text}><${ToneIcon} tone="bad" />${text}</li>`)}</ul>`}
          ${(stopTexts.length === 0 || rules.length > 0) && html`<${RuleList} rules=${rules} target=${ruleTarget} onChange=${onChange} />`}<//>
      </div>
    </div>`;
}

/** Says that the chain or its nodes are stopped, and how many orders wait there. @param {Chain} chain */
function describeStoppedParts({ state, nodes }) {
  const stopped = nodes.filter((node) => node.action === "stop");
  return [
    ...(state === "stopped" ? ["The chain is stopped"] : []),
    ...stopped.map(({ id, orders }) => `Node ${id} is stopped${orders ? `: ${pluralize(orders, "order")} ${orders === 1 ? "waits" : "wait"} there` : ""}`),
  ];
}

/** @param {{chain: Chain, url: string, onChange: () => void}} props */
function StopStartButton({ chain: { path, state }, url, onChange }) {
  /** @param {"running" | "stopped"} state */
  const setState = (state) => api.put(`${url}/state`, { state });
  const stop = async () => {
    const confirmed = await promptUser({
      title: `Stop ${path}`,
      text: html`<p>No order of this chain starts a step until the chain is started again, whatever its tenant. Running steps finish. The chain stays stopped after a restart.</p>`,
      actionLabel: "Stop",
      danger: true,
    });
    if (confirmed && await runWithToast(() => setState("stopped"), `${path} is stopped`, `${path} was not stopped`)) onChange();
  };
  const start = async () => {
    if (await runWithToast(() => setState("running"), `${path} is started`, `${path} was not started`)) onChange();
  };
  return state === "stopped"
    ? html`<${Button} icon="play" role="operator" onClick=${start}>Start<//>`
    : html`<${Button} icon="stop" role="operator" onClick=${stop}>Stop<//>`;
}
