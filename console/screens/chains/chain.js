// One chain: its picture with the orders on it, what its nodes do, stopping it, and its orders.

import { api, below } from "../../data/api.js";
import { useFollowed } from "../../data/follow.js";
import { counted } from "../../data/numbers.js";
import { bound } from "../../data/session.js";
import { Button } from "../../parts/button.js";
import { cli, CopyAs } from "../../parts/copy.js";
import { ask } from "../../parts/dialog.js";
import { Head, Panel } from "../../parts/facts.js";
import { Link } from "../../parts/link.js";
import { HoldButtons, Rules } from "../../parts/rules.js";
import { Empty, Notice, Shown } from "../../parts/states.js";
import { attempt } from "../../parts/toast.js";
import { html, useState } from "../../parts/ui.js";
import { setQuery } from "../../shell/router.js";
import { add } from "../orders/steer.js";
import { Orders } from "../orders/table.js";
import { Graph } from "./graph.js";
import { ChosenNode } from "./node.js";
import { ChainState } from "./state.js";

/** @typedef {import("../../data/bodies.js").Chain} Chain */

/** @param {{params: Record<string, string>, query: Record<string, string>}} props */
export default function Screen({ params, query }) {
  const path = `/${params.path}`;
  const address = `/api/v1/chains/${below(path)}`;
  const known = useFollowed({
    read: (signal) => /** @type {Promise<Chain & {eventId: number}>} */ (api.get(address, { signal })),
    filter: { types: ["OrderEvent", "JobChainEvent", "FileBasedEvent"], path },
    calm: 500,
    every: 5000,
  }, [path]);
  return html`<${Shown} of=${known} lines=${10} what="The chain could not be loaded">
    ${(/** @type {Chain} */ chain) => html`<${Detail} chain=${chain} address=${address} chosen=${query.node} after=${known.reload} />`}<//>`;
}

/** @param {{chain: Chain, address: string, chosen: string | undefined, after: () => void}} props */
function Detail({ chain, address, chosen, after }) {
  const { path, defined, orders, stranded, rules } = chain;
  const [told, setTold] = useState("");
  const place = { space: /** @type {const} */ ("chain"), name: path };
  const node = chain.nodes.find((one) => one.id === chosen);
  const lost = stranded.reduce((sum, one) => sum + one.orders, 0);
  return html`
    <${Head} title=${path} sub=${html`<${ChainState} chain=${chain} />${orders !== null && html`<span>${counted(orders, "order")}</span>`}
      <span>${counted(chain.nodes.length, "node")}</span>`}>
      ${defined && html`<${Button} kind="primary" icon="order" role="operator" onClick=${() => add(chain)}>Add an order<//>`}
      ${defined && bound.value === null && html`<${StopOrStart} chain=${chain} address=${address} after=${after} />`}
      <${HoldButtons} place=${place} rules=${rules} after=${after} />
      <${CopyAs} call=${{ path: address }} cli=${cli("chains", "show", path)} />
    <//>
    ${!defined && html`<${Notice} tone="warn">This chain is no longer defined. Its rules are kept, and its orders wait until it is defined again.<//>`}
    ${lost > 0 && html`<${Notice} tone="bad"><span>${counted(lost, "order")} ${lost === 1 ? "is" : "are"} at nodes that the chain no longer has:
      ${stranded.map((one) => `${one.node} (${one.orders})`).join(", ")}. Move them, or define the nodes again.</span>
      <${Link} to=${`/orders?path=${encodeURIComponent(path)}&state=Orphaned`}>Show them<//><//>`}
    ${defined && html`<${Panel} title="Graph" flush aside=${html`<span class="graph-key next">next</span><span class="graph-key error">on error</span>`}>
      <${Graph} chain=${chain} chosen=${node?.id} onChoose=${(/** @type {string} */ id) => setQuery({ node: id === chosen ? null : id })} />
    <//>`}
    <div class="columns">
      <div class="stack">
        <${Panel} title=${node ? `Orders at ${node.id}` : "Orders"} flush aside=${told}>
          <${Orders} path=${path} node=${node?.id} onCount=${setTold}
            empty=${(/** @type {boolean} */ none) => html`<${Empty} title=${none ? "No orders" : `No orders at ${node?.id}`} icon="order">
              <p>New orders appear here.</p><//>`} />
        <//>
      </div>
      <div class="stack">
        ${node && html`<${ChosenNode} key=${node.id} chain=${chain} node=${node} after=${after} />`}
        ${!node && chain.nodes.length > 0 && html`<${Panel} title="Nodes"><p class="soft">Select a node in the graph to see and change its action.</p><//>`}
        <${Panel} title="Pauses and blocks"><${Rules} rules=${rules} own=${place} after=${after} /><//>
      </div>
    </div>`;
}

/** @param {{chain: Chain, address: string, after: () => void}} props */
function StopOrStart({ chain: { path, state }, address, after }) {
  /** @param {"running" | "stopped"} state */
  const set = (state) => api.put(`${address}/state`, { state });
  const stop = async () => {
    const sure = await ask({
      title: `Stop ${path}`,
      text: html`<p>No order of this chain starts a step until the chain is started again, whatever its tenant. Running steps finish. The chain stays stopped after a restart.</p>`,
      action: "Stop",
      danger: true,
    });
    if (sure && await attempt(() => set("stopped"), `${path} is stopped`, `${path} was not stopped`)) after();
  };
  const start = async () => {
    if (await attempt(() => set("running"), `${path} is started`, `${path} was not started`)) after();
  };
  return state === "stopped"
    ? html`<${Button} icon="play" role="operator" onClick=${start}>Start<//>`
    : html`<${Button} icon="stop" role="operator" onClick=${stop}>Stop<//>`;
}
