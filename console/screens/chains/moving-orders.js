// Animates orders that move between nodes, from events of the stream.

import { subscribe } from "../../data/stream.js";
import { html, useEffect, useLayoutEffect, useRef, useState } from "../../parts/ui.js";

/** @typedef {{key: number, order: string, from: string, to: string}} MovingOrder */

/** Maximum dots at a time; the counts at the nodes include all orders. */
const MAX_MOVING_ORDERS = 40;
const ANIMATION_MS = 900;

let lastMovingOrderKey = 0;

/** The orders that are moving on a chain now, and a function that removes one. @param {string} path
 * @returns {[MovingOrder[], (key: number) => void]} */
export function useMovingOrders(path) {
  const [list, setList] = useState(/** @type {MovingOrder[]} */ ([]));
  useEffect(() => {
    setList([]);
    return subscribe({ types: ["OrderNodeChanged"], path }, {
      onEvents: (events) => setList((before) => [...before, ...events.map((event) => {
        lastMovingOrderKey += 1;
        return { key: lastMovingOrderKey, order: String(event.key), from: String(event.fromNodeId), to: String(event.nodeId) };
      })].slice(-MAX_MOVING_ORDERS)),
    });
  }, [path]);
  return [list, (key) => setList((before) => before.filter((order) => order.key !== key))];
}

/** A dot that moves along an edge once.
 * @param {{d: string, title: string, onEnd: () => void}} props */
export function MovingDot({ d, title, onEnd }) {
  const pathElement = useRef(/** @type {SVGPathElement | null} */ (null));
  const dot = useRef(/** @type {SVGCircleElement | null} */ (null));
  useLayoutEffect(() => {
    const path = pathElement.current;
    if (!path || matchMedia("(prefers-reduced-motion: reduce)").matches) {
      const timer = setTimeout(onEnd, 0);
      return () => clearTimeout(timer);
    }
    const length = path.getTotalLength();
    const startedAt = performance.now();
    let frame = 0;
    const drawFrame = () => {
      const progress = Math.min(1, (performance.now() - startedAt) / ANIMATION_MS);
      const eased = progress < 0.5 ? 2 * progress * progress : 1 - (-2 * progress + 2) ** 2 / 2;
      const { x, y } = path.getPointAtLength(eased * length);
      dot.current?.setAttribute("cx", String(x));
      dot.current?.setAttribute("cy", String(y));
      if (progress < 1) frame = requestAnimationFrame(drawFrame);
      else onEnd();
    };
    drawFrame();
    // A hidden page has no animation frames.
    const timer = setTimeout(onEnd, ANIMATION_MS + 400);
    return () => {
      cancelAnimationFrame(frame);
      clearTimeout(timer);
    };
  }, []);
  return html`<g class="moving-order" aria-hidden="true"><path ref=${pathElement} d=${d} /><circle ref=${dot} r="5"><title>${title}</title></circle></g>`;
}
