// Orders on their way from node to node, as the stream tells of them.

import { subscribe } from "../../data/stream.js";
import { html, useEffect, useLayoutEffect, useRef, useState } from "../../parts/ui.js";

/** @typedef {{key: number, order: string, from: string, to: string}} MovingOrder */

/** How many are drawn at a time; the numbers at the nodes tell of all. */
const MAX_MOVING = 40;
const ANIMATION_MS = 900;

let lastKey = 0;

/** Who is on the way on a chain, now. @param {string} path
 * @returns {[MovingOrder[], (key: number) => void]} */
export function useMovingOrders(path) {
  const [list, setList] = useState(/** @type {MovingOrder[]} */ ([]));
  useEffect(() => {
    setList([]);
    return subscribe({ types: ["OrderNodeChanged"], path }, {
      events: (events) => setList((before) => [...before, ...events.map((event) => {
        lastKey += 1;
        return { key: lastKey, order: String(event.key), from: String(event.fromNodeId), to: String(event.nodeId) };
      })].slice(-MAX_MOVING)),
    });
  }, [path]);
  return [list, (key) => setList((before) => before.filter((one) => one.key !== key))];
}

/** A dot that goes along a line once.
 * @param {{d: string, title: string, onEnd: () => void}} props */
export function MovingDot({ d, title, onEnd }) {
  const line = useRef(/** @type {SVGPathElement | null} */ (null));
  const dot = useRef(/** @type {SVGCircleElement | null} */ (null));
  useLayoutEffect(() => {
    const path = line.current;
    if (!path || matchMedia("(prefers-reduced-motion: reduce)").matches) {
      const timer = setTimeout(onEnd, 0);
      return () => clearTimeout(timer);
    }
    const length = path.getTotalLength();
    const begun = performance.now();
    let frame = 0;
    const step = () => {
      const part = Math.min(1, (performance.now() - begun) / ANIMATION_MS);
      const eased = part < 0.5 ? 2 * part * part : 1 - (-2 * part + 2) ** 2 / 2;
      const { x, y } = path.getPointAtLength(eased * length);
      dot.current?.setAttribute("cx", String(x));
      dot.current?.setAttribute("cy", String(y));
      if (part < 1) frame = requestAnimationFrame(step);
      else onEnd();
    };
    step();
    // Frames stand still where nobody looks.
    const timer = setTimeout(onEnd, ANIMATION_MS + 400);
    return () => {
      cancelAnimationFrame(frame);
      clearTimeout(timer);
    };
  }, []);
  return html`<g class="traveller" aria-hidden="true"><path ref=${line} d=${d} /><circle ref=${dot} r="5"><title>${title}</title></circle></g>`;
}
