// A chain as a picture: its nodes with how many orders are at each, the ways between them, orders on their way.

import { formatCompact, pluralize } from "../../data/numbers.js";
import { classNames, html, useEffect, useId, useMemo, useRef, useState } from "../../parts/ui.js";
import { drawChain, NODE_HEIGHT, NODE_WIDTH } from "./drawing.js";
import { MovingDot, useMovingOrders } from "./moving-orders.js";

/** @typedef {import("../../data/api-types.js").Chain} Chain */
/** @typedef {import("../../data/api-types.js").ChainNode} ChainNode */

/** Below this width it stands. */
const VERTICAL_BELOW_PX = 600;

/** @param {{chain: Chain, chosen: string | undefined, onChoose: (id: string) => void}} props */
export function ChainGraph({ chain, chosen, onChoose }) {
  const box = useRef(/** @type {HTMLDivElement | null} */ (null));
  const [standing, setStanding] = useState(innerWidth < VERTICAL_BELOW_PX);
  useEffect(() => {
    const element = box.current;
    if (!element) return undefined;
    const watch = new ResizeObserver(() => setStanding(element.clientWidth < VERTICAL_BELOW_PX));
    watch.observe(element);
    return () => watch.disconnect();
  }, []);
  const shape = JSON.stringify(chain.nodes.map(({ id, next, on_error }) => [id, next, on_error]));
  const picture = useMemo(() => drawChain(chain, standing), [shape, standing]);
  const [travellers, arrived] = useMovingOrders(chain.path);
  const id = useId();
  const nodes = new Map(chain.nodes.map((node) => [node.id, node]));
  return html`<div class="graph" ref=${box} tabindex="0" role="region" aria-label=${`The chain ${chain.path}`}>
    <svg width=${picture.width} height=${picture.height} viewBox=${`0 0 ${picture.width} ${picture.height}`} role="group" aria-label="Nodes in processing order">
      <defs>${["next", "error"].map((kind) => html`<marker key=${kind} id=${`${id}-${kind}`} class=${`arrow ${kind}`} viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto"><path d="M0 0.5 7.5 4 0 7.5z" /></marker>`)}</defs>
      ${picture.lines.map((line) => html`<path key=${`${line.kind} ${line.from} ${line.to}`} class=${classNames("way", line.kind)} d=${line.d} marker-end=${`url(#${id}-${line.kind})`}>
        <title>${line.kind === "next" ? `${line.from} leads to ${line.to}` : `on error, ${line.from} leads to ${line.to}`}</title></path>`)}
      ${picture.boxes.map((spot) => {
        const node = nodes.get(spot.id);
        return node && html`<${NodeShape} key=${spot.id} node=${node} x=${spot.x} y=${spot.y} chosen=${chosen === spot.id} first=${chain.nodes[0].id === spot.id} onChoose=${() => onChoose(spot.id)} />`;
      })}
      ${travellers.map(({ key, order, from, to }) => {
        const line = picture.lines.find((one) => one.from === from && one.to === to);
        return html`<${MovingDot} key=${key} d=${line?.d ?? `M0 0`} title=${order} onEnd=${() => arrived(key)} />`;
      })}
    </svg>
  </div>`;
}

/** @type {Record<ChainNode["action"], string>} */
const ACTION_LABELS = { process: "", stop: "stopped", next_state: "skipped" };

/** @param {{node: ChainNode, x: number, y: number, chosen: boolean, first: boolean, onChoose: () => void}} props */
function NodeShape({ node, x, y, chosen, first, onChoose }) {
  const { id, end, handler, action, orders } = node;
  const words = [id, end ? "end node" : `handler ${handler}`, first && "start node", ACTION_LABELS[action], orders !== null && pluralize(orders, "order")].filter(Boolean).join(", ");
  /** @param {KeyboardEvent} event */
  const key = (event) => {
    if (event.key !== "Enter" && event.key !== " ") return;
    event.preventDefault();
    onChoose();
  };
  return html`<g class=${classNames("chain-node", end && "end", chosen && "chosen", action)} transform=${`translate(${x} ${y})`} role="button" tabindex="0"
    aria-pressed=${chosen} onClick=${onChoose} onKeyDown=${key}>
    <title>${words}</title>
    <rect width=${NODE_WIDTH} height=${NODE_HEIGHT} rx=${end ? NODE_HEIGHT / 2 : 8} />
    <text class="node-id" x=${end ? 22 : 14} y="23">${truncate(id, 14)}</text>
    <text class="node-of" x=${end ? 22 : 14} y="41">${ACTION_LABELS[action] ? `${ACTION_LABELS[action]} · ` : ""}${end ? "end" : truncate(handler ?? "", ACTION_LABELS[action] ? 8 : 18)}</text>
    ${orders !== null && orders > 0 && html`<g class="node-count" transform=${`translate(${NODE_WIDTH - 14} 18)`}>
      <rect x=${-pillWidth(orders)} y="-11" width=${pillWidth(orders)} height="18" rx="9" /><text x=${-pillWidth(orders) / 2} y="2" text-anchor="middle">${formatCompact(orders)}</text></g>`}
    ${first && html`<path class="node-first" d="M-9 21 L-2 27 L-9 33z" />`}
  </g>`;
}

/** How wide the pill of a number is. @param {number} number */
function pillWidth(number) {
  return 12 + 7 * formatCompact(number).length;
}

/** @param {string} text @param {number} most */
function truncate(text, most) {
  return text.length > most ? `${text.slice(0, most - 1)}…` : text;
}
