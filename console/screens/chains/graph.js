// A chain as a picture: its nodes with how many orders are at each, the ways between them, orders on their way.

import { brief, counted } from "../../data/numbers.js";
import { classes, html, useEffect, useId, useMemo, useRef, useState } from "../../parts/ui.js";
import { draw, HEIGHT, WIDTH } from "./draw.js";
import { Dot, useTravellers } from "./travel.js";

/** @typedef {import("../../data/bodies.js").Chain} Chain */
/** @typedef {import("../../data/bodies.js").ChainNode} ChainNode */

/** Below this width it stands. */
const NARROW = 600;

/** @param {{chain: Chain, chosen: string | undefined, onChoose: (id: string) => void}} props */
export function Graph({ chain, chosen, onChoose }) {
  const box = useRef(/** @type {HTMLDivElement | null} */ (null));
  const [standing, setStanding] = useState(innerWidth < NARROW);
  useEffect(() => {
    const element = box.current;
    if (!element) return undefined;
    const watch = new ResizeObserver(() => setStanding(element.clientWidth < NARROW));
    watch.observe(element);
    return () => watch.disconnect();
  }, []);
  const shape = JSON.stringify(chain.nodes.map(({ id, next, on_error }) => [id, next, on_error]));
  const picture = useMemo(() => draw(chain, standing), [shape, standing]);
  const [travellers, arrived] = useTravellers(chain.path);
  const id = useId();
  const nodes = new Map(chain.nodes.map((node) => [node.id, node]));
  return html`<div class="graph" ref=${box} tabindex="0" role="region" aria-label=${`The chain ${chain.path}`}>
    <svg width=${picture.width} height=${picture.height} viewBox=${`0 0 ${picture.width} ${picture.height}`} role="group" aria-label="Nodes in processing order">
      <defs>${["next", "error"].map((kind) => html`<marker key=${kind} id=${`${id}-${kind}`} class=${`arrow ${kind}`} viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto"><path d="M0 0.5 7.5 4 0 7.5z" /></marker>`)}</defs>
      ${picture.lines.map((line) => html`<path key=${`${line.kind} ${line.from} ${line.to}`} class=${classes("way", line.kind)} d=${line.d} marker-end=${`url(#${id}-${line.kind})`}>
        <title>${line.kind === "next" ? `${line.from} leads to ${line.to}` : `on error, ${line.from} leads to ${line.to}`}</title></path>`)}
      ${picture.boxes.map((spot) => {
        const node = nodes.get(spot.id);
        return node && html`<${Drawn} key=${spot.id} node=${node} x=${spot.x} y=${spot.y} chosen=${chosen === spot.id} first=${chain.nodes[0].id === spot.id} onChoose=${() => onChoose(spot.id)} />`;
      })}
      ${travellers.map(({ key, order, from, to }) => {
        const line = picture.lines.find((one) => one.from === from && one.to === to);
        return html`<${Dot} key=${key} d=${line?.d ?? `M0 0`} title=${order} onEnd=${() => arrived(key)} />`;
      })}
    </svg>
  </div>`;
}

/** @type {Record<ChainNode["action"], string>} */
const DOES = { process: "", stop: "stopped", next_state: "skipped" };

/** @param {{node: ChainNode, x: number, y: number, chosen: boolean, first: boolean, onChoose: () => void}} props */
function Drawn({ node, x, y, chosen, first, onChoose }) {
  const { id, end, handler, action, orders } = node;
  const words = [id, end ? "end node" : `handler ${handler}`, first && "start node", DOES[action], orders !== null && counted(orders, "order")].filter(Boolean).join(", ");
  /** @param {KeyboardEvent} event */
  const key = (event) => {
    if (event.key !== "Enter" && event.key !== " ") return;
    event.preventDefault();
    onChoose();
  };
  return html`<g class=${classes("chain-node", end && "end", chosen && "chosen", action)} transform=${`translate(${x} ${y})`} role="button" tabindex="0"
    aria-pressed=${chosen} onClick=${onChoose} onKeyDown=${key}>
    <title>${words}</title>
    <rect width=${WIDTH} height=${HEIGHT} rx=${end ? HEIGHT / 2 : 8} />
    <text class="node-id" x=${end ? 22 : 14} y="23">${cut(id, 14)}</text>
    <text class="node-of" x=${end ? 22 : 14} y="41">${DOES[action] ? `${DOES[action]} · ` : ""}${end ? "end" : cut(handler ?? "", DOES[action] ? 8 : 18)}</text>
    ${orders !== null && orders > 0 && html`<g class="node-count" transform=${`translate(${WIDTH - 14} 18)`}>
      <rect x=${-pill(orders)} y="-11" width=${pill(orders)} height="18" rx="9" /><text x=${-pill(orders) / 2} y="2" text-anchor="middle">${brief(orders)}</text></g>`}
    ${first && html`<path class="node-first" d="M-9 21 L-2 27 L-9 33z" />`}
  </g>`;
}

/** How wide the pill of a number is. @param {number} number */
function pill(number) {
  return 12 + 7 * brief(number).length;
}

/** @param {string} text @param {number} most */
function cut(text, most) {
  return text.length > most ? `${text.slice(0, most - 1)}…` : text;
}
