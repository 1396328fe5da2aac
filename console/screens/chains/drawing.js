// Converts the layout of a chain to SVG boxes and paths, horizontal or vertical.

import { layoutChain } from "./layout.js";

/** @typedef {import("../../data/api-types.js").Chain} Chain */
/** @typedef {import("./layout.js").ChainEdge} ChainEdge */
/** @typedef {{id: string, x: number, y: number}} NodeBox */
/** @typedef {ChainEdge & {d: string, isBack: boolean}} EdgePath */
/** @typedef {{boxes: NodeBox[], edges: EdgePath[], width: number, height: number}} ChainDrawing */

export const NODE_WIDTH = 148;
export const NODE_HEIGHT = 54;
const MARGIN = 14;
/** Distance of back edges from the nodes and from each other. */
const BACK_EDGE_GAP = 22;

/** @param {Chain} chain
 * @returns {ChainEdge[]} */
export function chainEdges({ nodes }) {
  return nodes.flatMap(({ id, next, on_error }) => [
    ...(next === null ? [] : [/** @type {ChainEdge} */ ({ from: id, to: next, kind: "next" })]),
    ...(on_error === null || on_error === next ? [] : [/** @type {ChainEdge} */ ({ from: id, to: on_error, kind: "error" })]),
  ]);
}

/** @param {Chain} chain @param {boolean} vertical top to bottom, for narrow screens
 * @returns {ChainDrawing} */
export function drawChain(chain, vertical) {
  const sizes = vertical
    ? { along: NODE_HEIGHT, across: NODE_WIDTH, gapAlong: 40, gapAcross: 18 }
    : { along: NODE_WIDTH, across: NODE_HEIGHT, gapAlong: 62, gapAcross: 26 };
  const layout = layoutChain(chain.nodes.map((node) => node.id), chainEdges(chain), sizes);
  /** @param {number} along @param {number} across */
  const point = (along, across) => (vertical ? `${roundToTenth(across + MARGIN)} ${roundToTenth(along + MARGIN)}` : `${roundToTenth(along + MARGIN)} ${roundToTenth(across + MARGIN)}`);
  const halfLength = sizes.along / 2;
  let backEdgeCount = 0;
  const edges = layout.edges.map(({ from, to, kind, points, isBack }) => {
    if (!isBack) return { from, to, kind, isBack, d: forwardEdgePath(points, halfLength, point) };
    const distance = layout.breadth + BACK_EDGE_GAP + 12 * backEdgeCount;
    backEdgeCount += 1;
    return { from, to, kind, isBack, d: backEdgePath(points, sizes.across / 2, distance, point) };
  });
  const breadth = layout.breadth + (backEdgeCount ? BACK_EDGE_GAP + 12 * backEdgeCount : 0) + 2 * MARGIN;
  const length = layout.length + 2 * MARGIN;
  return {
    boxes: layout.nodes.map(({ id, along, across }) => (vertical ? { id, x: across + MARGIN, y: along + MARGIN } : { id, x: along + MARGIN, y: across + MARGIN })),
    edges,
    width: vertical ? breadth : length,
    height: vertical ? length : breadth,
  };
}

/** @param {number} number */
function roundToTenth(number) {
  return Math.round(number * 10) / 10;
}

/** The path of a forward edge, through its waypoints.
 * @param {{along: number, across: number}[]} points @param {number} halfLength @param {(along: number, across: number) => string} point */
function forwardEdgePath(points, halfLength, point) {
  let d = "";
  points.slice(1).forEach((to, index) => {
    const from = points[index];
    const [start, end] = [from.along + halfLength, to.along - halfLength];
    const middle = (start + end) / 2;
    d += `${d ? "L" : "M"}${point(start, from.across)}C${point(middle, from.across)} ${point(middle, to.across)} ${point(end, to.across)}`;
  });
  return d;
}

/** The path of a back edge, around all nodes.
 * @param {{along: number, across: number}[]} points @param {number} halfBreadth @param {number} distance @param {(along: number, across: number) => string} point */
function backEdgePath([from, to], halfBreadth, distance, point) {
  const [out, into] = [from.along + 14, to.along - 14];
  return `M${point(out, from.across + halfBreadth)}C${point(out, distance)} ${point(out, distance)} ${point((out + into) / 2, distance)}`
    + `C${point(into, distance)} ${point(into, distance)} ${point(into, to.across + halfBreadth)}`;
}
