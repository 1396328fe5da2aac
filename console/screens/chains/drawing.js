// From a plan of a chain to the shapes of its picture, lying or standing.

import { layoutChain } from "./layout.js";

/** @typedef {import("../../data/api-types.js").Chain} Chain */
/** @typedef {import("./layout.js").ChainEdge} ChainEdge */
/** @typedef {{id: string, x: number, y: number}} NodeBox */
/** @typedef {ChainEdge & {d: string, back: boolean}} EdgePath */
/** @typedef {{boxes: NodeBox[], lines: EdgePath[], width: number, height: number}} ChainDrawing */

export const NODE_WIDTH = 148;
export const NODE_HEIGHT = 54;
const MARGIN = 14;
/** How far lines that lead back stay away from the nodes, and from each other. */
const BACK_EDGE_GAP = 22;

/** @param {Chain} chain
 * @returns {ChainEdge[]} */
export function chainEdges({ nodes }) {
  return nodes.flatMap(({ id, next, on_error }) => [
    ...(next === null ? [] : [/** @type {ChainEdge} */ ({ from: id, to: next, kind: "next" })]),
    ...(on_error === null || on_error === next ? [] : [/** @type {ChainEdge} */ ({ from: id, to: on_error, kind: "error" })]),
  ]);
}

/** @param {Chain} chain @param {boolean} standing from above to below, for narrow screens
 * @returns {ChainDrawing} */
export function drawChain(chain, standing) {
  const sizes = standing
    ? { along: NODE_HEIGHT, across: NODE_WIDTH, gapAlong: 40, gapAcross: 18 }
    : { along: NODE_WIDTH, across: NODE_HEIGHT, gapAlong: 62, gapAcross: 26 };
  const plan = layoutChain(chain.nodes.map((node) => node.id), chainEdges(chain), sizes);
  /** @param {number} along @param {number} across */
  const point = (along, across) => (standing ? `${round(across + MARGIN)} ${round(along + MARGIN)}` : `${round(along + MARGIN)} ${round(across + MARGIN)}`);
  const half = sizes.along / 2;
  let backs = 0;
  const lines = plan.ways.map(({ from, to, kind, points, back }) => {
    if (!back) return { from, to, kind, back, d: forwardPath(points, half, point) };
    const far = plan.breadth + BACK_EDGE_GAP + 12 * backs;
    backs += 1;
    return { from, to, kind, back, d: backPath(points, sizes.across / 2, far, point) };
  });
  const breadth = plan.breadth + (backs ? BACK_EDGE_GAP + 12 * backs : 0) + 2 * MARGIN;
  const length = plan.length + 2 * MARGIN;
  return {
    boxes: plan.spots.map(({ id, along, across }) => (standing ? { id, x: across + MARGIN, y: along + MARGIN } : { id, x: along + MARGIN, y: across + MARGIN })),
    lines,
    width: standing ? breadth : length,
    height: standing ? length : breadth,
  };
}

/** @param {number} number */
function round(number) {
  return Math.round(number * 10) / 10;
}

/** From the end of one node to the begin of another, straight past what lies between.
 * @param {{along: number, across: number}[]} points @param {number} half @param {(along: number, across: number) => string} point */
function forwardPath(points, half, point) {
  let d = "";
  points.slice(1).forEach((to, index) => {
    const from = points[index];
    const [begin, end] = [from.along + half, to.along - half];
    const middle = (begin + end) / 2;
    d += `${d ? "L" : "M"}${point(begin, from.across)}C${point(middle, from.across)} ${point(middle, to.across)} ${point(end, to.across)}`;
  });
  return d;
}

/** Beside everything, and back to a node before.
 * @param {{along: number, across: number}[]} points @param {number} half @param {number} far @param {(along: number, across: number) => string} point */
function backPath([from, to], half, far, point) {
  const [out, into] = [from.along + 14, to.along - 14];
  return `M${point(out, from.across + half)}C${point(out, far)} ${point(out, far)} ${point((out + into) / 2, far)}`
    + `C${point(into, far)} ${point(into, far)} ${point(into, to.across + half)}`;
}
