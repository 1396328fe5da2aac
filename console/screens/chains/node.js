// The selected node of a chain: its properties, and changing its action.

import { api, encodeOrderOrChainPath, encodeSegment } from "../../data/api.js";
import { boundTenant, hasRole } from "../../data/session.js";
import { formatDuration } from "../../data/time.js";
import { Button } from "../../parts/button.js";
import { cliCommand } from "../../parts/copy.js";
import { promptUser } from "../../parts/prompt.js";
import { PropertyList, Panel } from "../../parts/panel.js";
import { HandlerLink, Link } from "../../parts/link.js";
import { runWithToast } from "../../parts/actions.js";
import { html } from "../../parts/ui.js";
import { setQuery } from "../../shell/router.js";

/** @typedef {import("../../data/api-types.js").Chain} Chain */
/** @typedef {import("../../data/api-types.js").ChainNode} ChainNode */
/** @typedef {import("../../data/api-types.js").ChainNodeAction} ChainNodeAction */

/** @type {Record<ChainNodeAction, [string, string]>} */
const CHAIN_NODE_ACTION_TEXTS = {
  process: ["Process", "Orders run the step of this node."],
  stop: ["Stop", "Orders wait at this node and do not run its step."],
  next_state: ["Skip", "Orders move on to the next node without running this step, delayed orders too."],
};

/** @param {{chain: Chain, node: ChainNode, onChange: () => void}} props */
export function SelectedChainNode({ chain, node, onChange }) {
  const { id, end, handler, next, on_error, setback, action, orders } = node;
  const maySetAction = hasRole("operator") && boundTenant.value === null;
  return html`<${Panel} title=${`Node ${id}`} aside=${html`<${Button} small kind="quiet" icon="close" label="Close" onClick=${() => setQuery({ node: null })} />`}>
    <${PropertyList} items=${[
      ["Handler", handler !== null && html`<${HandlerLink} name=${handler} />`],
      ["Kind", end && "end node: orders finish here"],
      ["Orders here", orders !== null && String(orders)],
      ["Next node", next],
      ["On error", !end && (on_error ?? "the order is suspended")],
      ["Retry", !end && (setback ? describeSetback(setback) : html`as set by <code>retry</code> of the handler`)],
      ["Action", !end && html`${CHAIN_NODE_ACTION_TEXTS[action][0]}<span class="soft">: ${CHAIN_NODE_ACTION_TEXTS[action][1]}</span>`],
    ]} />
    ${!end && maySetAction && html`<div class="node-actions" role="group" aria-label="Node action">
      ${Object.entries(CHAIN_NODE_ACTION_TEXTS).map(([name, [label, description]]) => html`<${Button} key=${name} small pressed=${action === name} title=${description}
        onClick=${() => confirmAndSetChainNodeAction(chain.path, id, /** @type {ChainNodeAction} */ (name), orders, onChange)}>${label}<//>`)}
    </div>
    <p class="hint"><code>${cliCommand("chains", "node", chain.path, id, action === "stop" ? "process" : "stop")}</code></p>`}
    ${orders !== null && orders > 0 && html`<p class="node-orders"><${Link} to=${`/orders?path=${encodeURIComponent(chain.path)}&node=${encodeURIComponent(id)}`}>Orders at this node<//></p>`}
  <//>`;
}

/** @param {import("../../data/api-types.js").SetbackPolicy} setback */
function describeSetback({ max, backoff, delay_seconds, max_delay_seconds, delays_seconds }) {
  const delaysText = backoff === "list" ? delays_seconds.map((seconds) => formatDuration(seconds * 1000)).join(", ")
    : `${formatDuration(delay_seconds * 1000)}${max_delay_seconds > delay_seconds ? ` up to ${formatDuration(max_delay_seconds * 1000)}` : ""}, ${backoff}`;
  return `${max === 1 ? "once" : `${max} times`}, after ${delaysText}`;
}

/** @param {string} path @param {string} node @param {ChainNodeAction} action @param {number | null} orders @param {() => void} onChange */
async function confirmAndSetChainNodeAction(path, node, action, orders, onChange) {
  if (action === "next_state") {
    const confirmed = await promptUser({
      title: `Skip the node ${node}`,
      text: html`<p>${CHAIN_NODE_ACTION_TEXTS.next_state[1]} ${orders ? html`<b>${orders}</b> ${orders === 1 ? "order is" : "orders are"} here now.` : ""} The work of this step is not done for them.</p>`,
      actionLabel: "Skip node",
      danger: true,
    });
    if (!confirmed) return;
  }
  const url = `/api/v1/chains/${encodeOrderOrChainPath(path)}/nodes/${encodeSegment(node)}/action`;
  if (await runWithToast(() => api.put(url, { action }), `${node}: ${CHAIN_NODE_ACTION_TEXTS[action][1]}`, `${node} was not changed`)) onChange();
}
