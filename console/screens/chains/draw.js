// From a plan of a chain to the shapes of its picture, lying or standing.

import { layout } from "./layout.js";

/** @typedef {import("../../data/bodies.js").Chain} Chain */
/** @typedef {import("./layout.js").Edge} Edge */
/** @typedef {{id: string, x: number, y: number}} Box */
/** @typedef {Edge & {d: string, back: boolean}} Line */
/** @typedef {{boxes: Box[], lines: Line[], width: number, height: number}} Picture */

export const WIDTH = 148;
export const HEIGHT = 54;
const MARGIN = 14;
/** How far lines that lead back stay away from the nodes, and from each other. */
const BESIDE = 22;

/** @param {Chain} chain
 * @returns {Edge[]} */
export function edgesOf({ nodes }) {
  return nodes.flatMap(({ id, next, on_error }) => [
    ...(next === null ? [] : [/** @type {Edge} */ ({ from: id, to: next, kind: "next" })]),
    ...(on_error === null || on_error === next ? [] : [/** @type {Edge} */ ({ from: id, to: on_error, kind: "error" })]),
  ]);
}

/** @param {Chain} chain @param {boolean} standing from above to below, for narrow screens
 * @returns {Picture} */
export function draw(chain, standing) {
  const sizes = standing
    ? { along: HEIGHT, across: WIDTH, gapAlong: 40, gapAcross: 18 }
    : { along: WIDTH, across: HEIGHT, gapAlong: 62, gapAcross: 26 };
  const plan = layout(chain.nodes.map((node) => node.id), edgesOf(chain), sizes);
  /** @param {number} along @param {number} across */
  const point = (along, across) => (standing ? `${round(across + MARGIN)} ${round(along + MARGIN)}` : `${round(along + MARGIN)} ${round(across + MARGIN)}`);
  const half = sizes.along / 2;
  let backs = 0;
  const lines = plan.ways.map(({ from, to, kind, points, back }) => {
    if (!back) return { from, to, kind, back, d: through(points, half, point) };
    const far = plan.breadth + BESIDE + 12 * backs;
    backs += 1;
    return { from, to, kind, back, d: around(points, sizes.across / 2, far, point) };
  });
  const breadth = plan.breadth + (backs ? BESIDE + 12 * backs : 0) + 2 * MARGIN;
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
function through(points, half, point) {
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
function around([from, to], half, far, point) {
  const [out, into] = [from.along + 14, to.along - 14];
  return `M${point(out, from.across + half)}C${point(out, far)} ${point(out, far)} ${point((out + into) / 2, far)}`
    + `C${point(into, far)} ${point(into, far)} ${point(into, to.across + half)}`;
}
