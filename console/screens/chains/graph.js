// The graph of a chain: nodes with order counts, edges, and moving orders.

import { formatCompactNumber, pluralize } from "../../data/numbers.js";
import { classNames, html, useEffect, useId, useMemo, useRef, useState } from "../../parts/ui.js";
import { drawChain, NODE_HEIGHT, NODE_WIDTH } from "./drawing.js";
import { MovingDot, useMovingOrders } from "./moving-orders.js";

/** @typedef {import("../../data/api-types.js").Chain} Chain */
/** @typedef {import("../../data/api-types.js").ChainNode} ChainNode */

/** Narrower graphs are drawn vertically. */
const VERTICAL_BELOW_WIDTH_PX = 600;

/** @param {{chain: Chain, selectedId: string | undefined, onSelect: (id: string) => void}} props */
export function ChainGraph({ chain, selectedId, onSelect }) {
  const box = useRef(/** @type {HTMLDivElement | null} */ (null));
  const [vertical, setVertical] = useState(innerWidth < VERTICAL_BELOW_WIDTH_PX);
  useEffect(() => {
    const element = box.current;
    if (!element) return undefined;
    const resizeObserver = new ResizeObserver(() => setVertical(element.clientWidth < VERTICAL_BELOW_WIDTH_PX));
    resizeObserver.observe(element);
    return () => resizeObserver.disconnect();
  }, []);
  const structureKey = JSON.stringify(chain.nodes.map(({ id, next, on_error }) => [id, next, on_error]));
  const drawing = useMemo(() => drawChain(chain, vertical), [structureKey, vertical]);
  const [movingOrders, removeMovingOrder] = useMovingOrders(chain.path);
  const id = useId();
  const nodesById = new Map(chain.nodes.map((node) => [node.id, node]));
  return html`<div class="graph" ref=${box} tabindex="0" role="region" aria-label=${`The chain ${chain.path}`}>
    <svg width=${drawing.width} height=${drawing.height} viewBox=${`0 0 ${drawing.width} ${drawing.height}`} role="group" aria-label="Nodes in processing order">
      <defs>${["next", "error"].map((kind) => html`<marker key=${kind} id=${`${id}-${kind}`} class=${`arrow ${kind}`} viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto"><path d="M0 0.5 7.5 4 0 7.5z" /></marker>`)}</defs>
      ${drawing.edges.map((edge) => html`<path key=${`${edge.kind} ${edge.from} ${edge.to}`} class=${classNames("edge", edge.kind)} d=${edge.d} marker-end=${`url(#${id}-${edge.kind})`}>
        <title>${edge.kind === "next" ? `${edge.from} leads to ${edge.to}` : `on error, ${edge.from} leads to ${edge.to}`}</title></path>`)}
      ${drawing.boxes.map((box) => {
        const node = nodesById.get(box.id);
        return node && html`<${ChainNodeShape} key=${box.id} node=${node} x=${box.x} y=${box.y} selected=${selectedId === box.id} isStart=${chain.nodes[0].id === box.id} onSelect=${() => onSelect(box.id)} />`;
      })}
      ${movingOrders.map(({ key, order, from, to }) => {
        const edge = drawing.edges.find((candidate) => candidate.from === from && candidate.to === to);
        return html`<${MovingDot} key=${key} d=${edge?.d ?? `M0 0`} title=${order} onEnd=${() => removeMovingOrder(key)} />`;
      })}
    </svg>
  </div>`;
}

/** @type {Record<ChainNode["action"], string>} */
const CHAIN_NODE_STATE_LABELS = { process: "", stop: "stopped", next_state: "skipped" };

/** @param {{node: ChainNode, x: number, y: number, selected: boolean, isStart: boolean, onSelect: () => void}} props */
function ChainNodeShape({ node, x, y, selected, isStart, onSelect }) {
  const { id, end, handler, action, orders } = node;
  const label = [id, end ? "end node" : `handler ${handler}`, isStart && "start node", CHAIN_NODE_STATE_LABELS[action], orders !== null && pluralize(orders, "order")].filter(Boolean).join(", ");
  /** @param {KeyboardEvent} event */
  const handleKeyDown = (event) => {
    if (event.key !== "Enter" && event.key !== " ") return;
    event.preventDefault();
    onSelect();
  };
  return html`<g class=${classNames("chain-node", end && "end", selected && "selected", action)} transform=${`translate(${x} ${y})`} role="button" tabindex="0"
    aria-pressed=${selected} onClick=${onSelect} onKeyDown=${handleKeyDown}>
    <title>${label}</title>
    <rect width=${NODE_WIDTH} height=${NODE_HEIGHT} rx=${end ? NODE_HEIGHT / 2 : 8} />
    <text class="node-id" x=${end ? 22 : 14} y="23">${truncate(id, 14)}</text>
    <text class="node-handler" x=${end ? 22 : 14} y="41">${CHAIN_NODE_STATE_LABELS[action] ? `${CHAIN_NODE_STATE_LABELS[action]} · ` : ""}${end ? "end" : truncate(handler ?? "", CHAIN_NODE_STATE_LABELS[action] ? 8 : 18)}</text>
    ${orders !== null && orders > 0 && html`<g class="node-count" transform=${`translate(${NODE_WIDTH - 14} 18)`}>
      <rect x=${-pillWidth(orders)} y="-11" width=${pillWidth(orders)} height="18" rx="9" /><text x=${-pillWidth(orders) / 2} y="2" text-anchor="middle">${formatCompactNumber(orders)}</text></g>`}
    ${isStart && html`<path class="node-start" d="M-9 21 L-2 27 L-9 33z" />`}
  </g>`;
}

/** Width of the pill around a count. @param {number} number */
function pillWidth(number) {
  return 12 + 7 * formatCompactNumber(number).length;
}

/** @param {string} text @param {number} maxLength */
function truncate(text, maxLength) {
  return text.length > maxLength ? `${text.slice(0, maxLength - 1)}…` : text;
}
