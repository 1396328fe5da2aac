// Where the nodes of a chain are drawn: in layers, each behind all that lead to it, with few crossings.
//
//   edges ─▶ those that lead back set aside ─▶ layers by the longest way ─▶ stand-ins where an edge passes a layer
//         ─▶ the order within layers, by their neighbours ─▶ places, straight where there is room
//
// It knows nothing of pictures: `along` is the way that orders go, `across` the other, and whoever draws turns them.

/** @typedef {{from: string, to: string, kind: "next" | "error"}} ChainEdge */
/** @typedef {{id: string, layer: number, along: number, across: number, real: boolean}} LayoutNode */
/** @typedef {ChainEdge & {points: {along: number, across: number}[], back: boolean}} RoutedEdge */
/** @typedef {{spots: LayoutNode[], ways: RoutedEdge[], length: number, breadth: number}} ChainLayout */

/** Sizes of nodes, and what lies between them. @typedef {{along: number, across: number, gapAlong: number, gapAcross: number}} NodeSizes */

/** How often orders and places are looked at again. */
const ITERATIONS = 8;

/** @param {string[]} ids in the order of the configuration: the first is where orders begin
 * @param {ChainEdge[]} edges @param {NodeSizes} sizes
 * @returns {ChainLayout} */
export function layoutChain(ids, edges, sizes) {
  const known = new Set(ids);
  const valid = edges.filter(({ from, to }) => known.has(from) && known.has(to));
  const back = findBackEdges(ids, valid);
  const forward = valid.filter((edge) => !back.has(edge));
  const layers = assignLayers(ids, forward);
  /** @type {Map<string, LayoutNode>} */
  const spots = new Map(ids.map((id) => [id, { id, layer: layers.get(id) ?? 0, along: 0, across: 0, real: true }]));
  /** Edges as chains of neighbours, stand-ins between. @type {{edge: ChainEdge, stops: LayoutNode[]}[]} */
  const runs = forward.map((edge, number) => ({ edge, stops: insertWaypoints(edge, number, spots) }));
  const near = collectNeighbours(runs);
  const columns = orderLayers([...spots.values()], near);
  assignPositions(columns, near, sizes);
  const length = columns.length * sizes.along + (columns.length - 1) * sizes.gapAlong;
  const all = [...spots.values()];
  const least = Math.min(...all.map((spot) => spot.across));
  for (const spot of all) spot.across -= least;
  const breadth = Math.max(0, ...all.map((spot) => spot.across)) + sizes.across;
  /** @param {LayoutNode} spot */
  const middle = ({ along, across }) => ({ along: along + sizes.along / 2, across: across + sizes.across / 2 });
  return {
    spots: all.filter((spot) => spot.real),
    ways: [
      ...runs.map(({ edge, stops }) => ({ ...edge, back: false, points: stops.map(middle) })),
      ...[...back].map((edge) => ({ ...edge, back: true, points: [edge.from, edge.to].map((id) => middle(/** @type {LayoutNode} */ (spots.get(id)))) })),
    ],
    length,
    breadth,
  };
}

/** Edges that lead to a node from which one came: without them there are no circles.
 * @param {string[]} ids @param {ChainEdge[]} edges */
function findBackEdges(ids, edges) {
  /** @type {Set<ChainEdge>} */
  const back = new Set();
  /** @type {Map<string, "open" | "done">} */
  const seen = new Map();
  /** @type {Map<string, ChainEdge[]>} */
  const leaving = new Map(ids.map((id) => [id, []]));
  for (const edge of edges) leaving.get(edge.from)?.push(edge);
  for (const start of ids) {
    if (seen.has(start)) continue;
    // Without recursion: a chain may be long.
    const path = [{ id: start, rest: [...(leaving.get(start) ?? [])] }];
    seen.set(start, "open");
    while (path.length) {
      const top = path[path.length - 1];
      const edge = top.rest.shift();
      if (!edge) {
        seen.set(top.id, "done");
        path.pop();
      } else if (seen.get(edge.to) === "open") {
        back.add(edge);
      } else if (!seen.has(edge.to)) {
        seen.set(edge.to, "open");
        path.push({ id: edge.to, rest: [...(leaving.get(edge.to) ?? [])] });
      }
    }
  }
  return back;
}

/** The longest way to each node. @param {string[]} ids @param {ChainEdge[]} edges without circles */
function assignLayers(ids, edges) {
  const layers = new Map(ids.map((id) => [id, 0]));
  for (let round = 0; round < ids.length; round += 1) {
    let moved = false;
    for (const { from, to } of edges) {
      const least = (layers.get(from) ?? 0) + 1;
      if ((layers.get(to) ?? 0) < least) {
        layers.set(to, least);
        moved = true;
      }
    }
    if (!moved) break;
  }
  return layers;
}

/** The spots that an edge goes through, with a stand-in in each layer that it passes.
 * @param {ChainEdge} edge @param {number} number @param {Map<string, LayoutNode>} spots */
function insertWaypoints({ from, to }, number, spots) {
  const [first, last] = [/** @type {LayoutNode} */ (spots.get(from)), /** @type {LayoutNode} */ (spots.get(to))];
  const list = [first];
  for (let layer = first.layer + 1; layer < last.layer; layer += 1) {
    // Names of nodes hold no blanks.
    const spot = { id: ` ${number} ${layer}`, layer, along: 0, across: 0, real: false };
    spots.set(spot.id, spot);
    list.push(spot);
  }
  return [...list, last];
}

/** Who stands before and behind a spot; those on the way that orders usually go apart from the others.
 * @typedef {{before: LayoutNode[], behind: LayoutNode[], usual: LayoutNode[]}} Neighbours */

/** @param {{edge: ChainEdge, stops: LayoutNode[]}[]} runs
 * @returns {Map<LayoutNode, Neighbours>} */
function collectNeighbours(runs) {
  /** @type {Map<LayoutNode, Neighbours>} */
  const near = new Map();
  /** @param {LayoutNode} spot */
  const of = (spot) => {
    let found = near.get(spot);
    if (!found) near.set(spot, (found = { before: [], behind: [], usual: [] }));
    return found;
  };
  for (const { edge, stops } of runs) {
    for (let index = 1; index < stops.length; index += 1) {
      const [a, b] = [of(stops[index - 1]), of(stops[index])];
      a.behind.push(stops[index]);
      b.before.push(stops[index - 1]);
      if (edge.kind !== "next") continue;
      a.usual.push(stops[index]);
      b.usual.push(stops[index - 1]);
    }
  }
  return near;
}

/** @param {number[]} numbers @param {number} none */
function mean(numbers, none) {
  return numbers.length ? numbers.reduce((sum, one) => sum + one, 0) / numbers.length : none;
}

/** Layers with their spots in an order that crosses few edges: each near the middle of its neighbours, the usual way on
 * the one side.
 * @param {LayoutNode[]} spots @param {Map<LayoutNode, Neighbours>} near */
function orderLayers(spots, near) {
  const depth = Math.max(0, ...spots.map((spot) => spot.layer)) + 1;
  /** @type {LayoutNode[][]} */
  const columns = Array.from({ length: depth }, () => []);
  for (const spot of spots) columns[spot.layer].push(spot);
  /** @type {Map<LayoutNode, number>} */
  const at = new Map(columns.flatMap((column) => column.map((spot, index) => [spot, index])));
  for (let round = 0; round < ITERATIONS; round += 1) {
    const down = round % 2 === 0;
    for (const column of down ? columns : [...columns].reverse()) {
      const middles = new Map(column.map((spot, index) => {
        const known = near.get(spot);
        const middle = mean((down ? known?.before : known?.behind)?.map((other) => at.get(other) ?? 0) ?? [], index);
        return [spot, middle + (known?.usual.length ? 0 : 0.5)];
      }));
      // The sort is stable: what is as near stays as it was.
      column.sort((a, b) => (middles.get(a) ?? 0) - (middles.get(b) ?? 0));
      column.forEach((spot, index) => at.set(spot, index));
    }
  }
  return columns;
}

/** Gives every spot its place: beside its neighbours on the usual way, as far as those before it in the layer allow.
 * @param {LayoutNode[][]} columns @param {Map<LayoutNode, Neighbours>} near @param {NodeSizes} sizes */
function assignPositions(columns, near, { along, across, gapAlong, gapAcross }) {
  const step = across + gapAcross;
  columns.forEach((column, layer) => column.forEach((spot, index) => {
    spot.along = layer * (along + gapAlong);
    spot.across = index * step;
  }));
  for (let round = 0; round < ITERATIONS; round += 1) {
    for (const column of round % 2 === 0 ? columns : [...columns].reverse()) {
      column.forEach((spot, index) => {
        const known = near.get(spot);
        const beside = known?.usual.length ? known.usual : [...(known?.before ?? []), ...(known?.behind ?? [])];
        const wish = mean(beside.map((other) => other.across), spot.across);
        spot.across = Math.max(wish, index ? column[index - 1].across + step : -Infinity);
      });
    }
  }
}
