// Layered layout of a chain with few edge crossings.
//
//   edges ─▶ remove back edges ─▶ assign layers by the longest path ─▶ add waypoints where an edge skips a layer
//         ─▶ order nodes within layers by their neighbours ─▶ assign positions, straight where possible
//
// `along` is the direction of the orders, `across` the other one; the drawing maps them to x and y.

/** @typedef {{from: string, to: string, kind: "next" | "error"}} ChainEdge */
/** @typedef {{id: string, layer: number, along: number, across: number, isWaypoint: boolean}} LayoutNode */
/** @typedef {ChainEdge & {points: {along: number, across: number}[], isBack: boolean}} RoutedEdge */
/** @typedef {{nodes: LayoutNode[], edges: RoutedEdge[], length: number, breadth: number}} ChainLayout */

/** Sizes of nodes and gaps.
 * @typedef {{along: number, across: number, gapAlong: number, gapAcross: number}} NodeSizes */

/** Rounds of improving order and positions. */
const LAYOUT_ITERATIONS = 8;

/** @param {string[]} ids in the order of the configuration: the first is the start node
 * @param {ChainEdge[]} edges @param {NodeSizes} sizes
 * @returns {ChainLayout} */
export function layoutChain(ids, edges, sizes) {
  const nodeIds = new Set(ids);
  const validEdges = edges.filter(({ from, to }) => nodeIds.has(from) && nodeIds.has(to));
  const backEdges = findBackEdges(ids, validEdges);
  const forwardEdges = validEdges.filter((edge) => !backEdges.has(edge));
  const layers = assignLayers(ids, forwardEdges);
  /** @type {Map<string, LayoutNode>} */
  const nodes = new Map(ids.map((id) => [id, { id, layer: layers.get(id) ?? 0, along: 0, across: 0, isWaypoint: false }]));
  /** Edges as sequences of nodes and waypoints. @type {{edge: ChainEdge, path: LayoutNode[]}[]} */
  const edgePaths = forwardEdges.map((edge, number) => ({ edge, path: insertWaypoints(edge, number, nodes) }));
  const neighbours = collectNeighbours(edgePaths);
  const columns = orderLayers([...nodes.values()], neighbours);
  assignPositions(columns, neighbours, sizes);
  const length = columns.length * sizes.along + (columns.length - 1) * sizes.gapAlong;
  const all = [...nodes.values()];
  const minAcross = Math.min(...all.map((node) => node.across));
  for (const node of all) node.across -= minAcross;
  const breadth = Math.max(0, ...all.map((node) => node.across)) + sizes.across;
  /** @param {LayoutNode} node */
  const center = ({ along, across }) => ({ along: along + sizes.along / 2, across: across + sizes.across / 2 });
  return {
    nodes: all.filter((node) => !node.isWaypoint),
    edges: [
      ...edgePaths.map(({ edge, path }) => ({ ...edge, isBack: false, points: path.map(center) })),
      ...[...backEdges].map((edge) => ({ ...edge, isBack: true, points: [edge.from, edge.to].map((id) => center(/** @type {LayoutNode} */ (nodes.get(id)))) })),
    ],
    length,
    breadth,
  };
}

/** Finds the edges that close a cycle (depth-first search).
 * @param {string[]} ids @param {ChainEdge[]} edges */
function findBackEdges(ids, edges) {
  /** @type {Set<ChainEdge>} */
  const backEdges = new Set();
  /** @type {Map<string, "open" | "done">} */
  const visited = new Map();
  /** @type {Map<string, ChainEdge[]>} */
  const outgoingEdges = new Map(ids.map((id) => [id, []]));
  for (const edge of edges) outgoingEdges.get(edge.from)?.push(edge);
  for (const start of ids) {
    if (visited.has(start)) continue;
    // Not recursive: a chain may be long.
    const searchPath = [{ id: start, rest: [...(outgoingEdges.get(start) ?? [])] }];
    visited.set(start, "open");
    while (searchPath.length) {
      const top = searchPath[searchPath.length - 1];
      const edge = top.rest.shift();
      if (!edge) {
        visited.set(top.id, "done");
        searchPath.pop();
      } else if (visited.get(edge.to) === "open") {
        backEdges.add(edge);
      } else if (!visited.has(edge.to)) {
        visited.set(edge.to, "open");
        searchPath.push({ id: edge.to, rest: [...(outgoingEdges.get(edge.to) ?? [])] });
      }
    }
  }
  return backEdges;
}

/** Assigns each node the length of the longest path to it. @param {string[]} ids @param {ChainEdge[]} edges without
 * cycles */
function assignLayers(ids, edges) {
  const layers = new Map(ids.map((id) => [id, 0]));
  for (let round = 0; round < ids.length; round += 1) {
    let moved = false;
    for (const { from, to } of edges) {
      const minimum = (layers.get(from) ?? 0) + 1;
      if ((layers.get(to) ?? 0) < minimum) {
        layers.set(to, minimum);
        moved = true;
      }
    }
    if (!moved) break;
  }
  return layers;
}

/** The nodes of an edge, with a waypoint in each layer that it skips.
 * @param {ChainEdge} edge @param {number} number @param {Map<string, LayoutNode>} nodes */
function insertWaypoints({ from, to }, number, nodes) {
  const [first, last] = [/** @type {LayoutNode} */ (nodes.get(from)), /** @type {LayoutNode} */ (nodes.get(to))];
  const list = [first];
  for (let layer = first.layer + 1; layer < last.layer; layer += 1) {
    // Node ids contain no blanks, so waypoint ids are unique.
    const waypoint = { id: ` ${number} ${layer}`, layer, along: 0, across: 0, isWaypoint: true };
    nodes.set(waypoint.id, waypoint);
    list.push(waypoint);
  }
  return [...list, last];
}

/** Neighbours of a node in the previous and the next layer; `onNextEdges` are those along `next` edges.
 * @typedef {{inPrevious: LayoutNode[], inNext: LayoutNode[], onNextEdges: LayoutNode[]}} Neighbours */

/** @param {{edge: ChainEdge, path: LayoutNode[]}[]} edgePaths
 * @returns {Map<LayoutNode, Neighbours>} */
function collectNeighbours(edgePaths) {
  /** @type {Map<LayoutNode, Neighbours>} */
  const neighbours = new Map();
  /** @param {LayoutNode} node */
  const neighboursOf = (node) => {
    let found = neighbours.get(node);
    if (!found) neighbours.set(node, (found = { inPrevious: [], inNext: [], onNextEdges: [] }));
    return found;
  };
  for (const { edge, path } of edgePaths) {
    for (let index = 1; index < path.length; index += 1) {
      const [from, to] = [neighboursOf(path[index - 1]), neighboursOf(path[index])];
      from.inNext.push(path[index]);
      to.inPrevious.push(path[index - 1]);
      if (edge.kind !== "next") continue;
      from.onNextEdges.push(path[index]);
      to.onNextEdges.push(path[index - 1]);
    }
  }
  return neighbours;
}

/** @param {number[]} numbers @param {number} fallback */
function meanOrFallback(numbers, fallback) {
  return numbers.length ? numbers.reduce((sum, number) => sum + number, 0) / numbers.length : fallback;
}

/** Orders the nodes of each layer by the mean position of their neighbours, nodes on `next` edges first.
 * @param {LayoutNode[]} nodes @param {Map<LayoutNode, Neighbours>} neighbours */
function orderLayers(nodes, neighbours) {
  const layerCount = Math.max(0, ...nodes.map((node) => node.layer)) + 1;
  /** @type {LayoutNode[][]} */
  const columns = Array.from({ length: layerCount }, () => []);
  for (const node of nodes) columns[node.layer].push(node);
  /** @type {Map<LayoutNode, number>} */
  const indexByNode = new Map(columns.flatMap((column) => column.map((node, index) => [node, index])));
  for (let round = 0; round < LAYOUT_ITERATIONS; round += 1) {
    const isForward = round % 2 === 0;
    for (const column of isForward ? columns : [...columns].reverse()) {
      const sortKeys = new Map(column.map((node, index) => {
        const nearby = neighbours.get(node);
        const meanIndex = meanOrFallback((isForward ? nearby?.inPrevious : nearby?.inNext)?.map((other) => indexByNode.get(other) ?? 0) ?? [], index);
        return [node, meanIndex + (nearby?.onNextEdges.length ? 0 : 0.5)];
      }));
      // The sort is stable: ties keep their order.
      column.sort((a, b) => (sortKeys.get(a) ?? 0) - (sortKeys.get(b) ?? 0));
      column.forEach((node, index) => indexByNode.set(node, index));
    }
  }
  return columns;
}

/** Positions every node next to its neighbours on `next` edges, without overlapping the previous node of its layer.
 * @param {LayoutNode[][]} columns @param {Map<LayoutNode, Neighbours>} neighbours @param {NodeSizes} sizes */
function assignPositions(columns, neighbours, { along, across, gapAlong, gapAcross }) {
  const step = across + gapAcross;
  columns.forEach((column, layer) => column.forEach((node, index) => {
    node.along = layer * (along + gapAlong);
    node.across = index * step;
  }));
  for (let round = 0; round < LAYOUT_ITERATIONS; round += 1) {
    for (const column of round % 2 === 0 ? columns : [...columns].reverse()) {
      column.forEach((node, index) => {
        const nearby = neighbours.get(node);
        const reference = nearby?.onNextEdges.length ? nearby.onNextEdges : [...(nearby?.inPrevious ?? []), ...(nearby?.inNext ?? [])];
        const preferred = meanOrFallback(reference.map((other) => other.across), node.across);
        node.across = Math.max(preferred, index ? column[index - 1].across + step : -Infinity);
      });
    }
  }
}
