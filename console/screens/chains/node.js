// The node that was chosen in the picture: what it does, and having it do something else.

import { api, below, segment } from "../../data/api.js";
import { bound, may } from "../../data/session.js";
import { duration } from "../../data/time.js";
import { Button } from "../../parts/button.js";
import { cli } from "../../parts/copy.js";
import { ask } from "../../parts/dialog.js";
import { Facts, Panel } from "../../parts/facts.js";
import { HandlerLink, Link } from "../../parts/link.js";
import { attempt } from "../../parts/toast.js";
import { html } from "../../parts/ui.js";
import { setQuery } from "../../shell/router.js";

/** @typedef {import("../../data/bodies.js").Chain} Chain */
/** @typedef {import("../../data/bodies.js").ChainNode} ChainNode */
/** @typedef {import("../../data/bodies.js").NodeAction} NodeAction */

/** @type {Record<NodeAction, [string, string]>} */
const ACTIONS = {
  process: ["Process", "Orders run the step of this node."],
  stop: ["Stop", "Orders wait at this node and do not run its step."],
  next_state: ["Skip", "Orders move on to the next node without running this step, delayed orders too."],
};

/** @param {{chain: Chain, node: ChainNode, after: () => void}} props */
export function ChosenNode({ chain, node, after }) {
  const { id, end, handler, next, on_error, setback, action, orders } = node;
  const steers = may("operator") && bound.value === null;
  return html`<${Panel} title=${`Node ${id}`} aside=${html`<${Button} small kind="quiet" icon="close" label="Close" onClick=${() => setQuery({ node: null })} />`}>
    <${Facts} of=${[
      ["Handler", handler !== null && html`<${HandlerLink} name=${handler} />`],
      ["Kind", end && "end node: orders finish here"],
      ["Orders here", orders !== null && String(orders)],
      ["Next node", next],
      ["On error", !end && (on_error ?? "the order is suspended")],
      ["Retry", !end && (setback ? retries(setback) : html`as set by <code>retry</code> of the handler`)],
      ["Action", !end && html`${ACTIONS[action][0]}<span class="soft">: ${ACTIONS[action][1]}</span>`],
    ]} />
    ${!end && steers && html`<div class="node-actions" role="group" aria-label="Node action">
      ${Object.entries(ACTIONS).map(([name, [word, means]]) => html`<${Button} key=${name} small pressed=${action === name} title=${means}
        onClick=${() => set(chain.path, id, /** @type {NodeAction} */ (name), orders, after)}>${word}<//>`)}
    </div>
    <p class="hint"><code>${cli("chains", "node", chain.path, id, action === "stop" ? "process" : "stop")}</code></p>`}
    ${orders !== null && orders > 0 && html`<p class="node-orders"><${Link} to=${`/orders?path=${encodeURIComponent(chain.path)}&node=${encodeURIComponent(id)}`}>Orders at this node<//></p>`}
  <//>`;
}

/** @param {import("../../data/bodies.js").Setback} setback */
function retries({ max, backoff, delay_seconds, max_delay_seconds, delays_seconds }) {
  const waits = backoff === "list" ? delays_seconds.map((seconds) => duration(seconds * 1000)).join(", ")
    : `${duration(delay_seconds * 1000)}${max_delay_seconds > delay_seconds ? ` up to ${duration(max_delay_seconds * 1000)}` : ""}, ${backoff}`;
  return `${max === 1 ? "once" : `${max} times`}, after ${waits}`;
}

/** @param {string} path @param {string} node @param {NodeAction} action @param {number | null} orders @param {() => void} after */
async function set(path, node, action, orders, after) {
  if (action === "next_state") {
    const sure = await ask({
      title: `Skip the node ${node}`,
      text: html`<p>${ACTIONS.next_state[1]} ${orders ? html`<b>${orders}</b> ${orders === 1 ? "order is" : "orders are"} here now.` : ""} The work of this step is not done for them.</p>`,
      action: "Skip node",
      danger: true,
    });
    if (!sure) return;
  }
  const address = `/api/v1/chains/${below(path)}/nodes/${segment(node)}/action`;
  if (await attempt(() => api.put(address, { action }), `${node}: ${ACTIONS[action][1]}`, `${node} was not changed`)) after();
}
