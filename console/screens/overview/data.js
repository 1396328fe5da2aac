// Reads the data of the overview. Calls that the token may not make are left out.

import { api } from "../../data/api.js";
import { boundTenant } from "../../data/session.js";

/** @typedef {{path: string, state: string, stranded: {node: string, orders: number}[],
 *   nodes: import("../../data/api-types.js").ChainNode[], rules: import("../../data/api-types.js").Rule[]}} ChainSummary */

/** @typedef {{eventId: number, handlers: import("../../data/api-types.js").Handler[], failures: import("../../data/api-types.js").Task[],
 *   nodes: import("../../data/api-types.js").Node[] | null, health: import("../../data/api-types.js").Health | null,
 * chains: ChainSummary[]}} OverviewData */

/** @param {AbortSignal} signal
 * @returns {Promise<OverviewData>} */
export async function readOverview(signal) {
  const [handlers, failed, nodes, health, chains] = await Promise.all([
    api.get("/api/v1/handlers", { signal }),
    api.get("/api/v1/tasks", { query: { status: "FAILED", limit: 8 }, signal }),
    boundTenant.value === null ? api.get("/api/v1/nodes", { signal }) : null,
    api.get("/healthz", { signal }),
    api.get("/api/v1/chains", { signal }),
  ]);
  return {
    eventId: handlers.eventId, handlers: handlers.handlers, failures: failed.tasks, nodes: nodes?.nodes ?? null, health,
    chains: chains.chains,
  };
}

/** Tasks that could run now: not those of queues that are paused, or whose chain or node is stopped.
 * @param {import("../../data/api-types.js").Handler} handler */
export function countReadyTasks({ counts, queues, rules }) {
  if (rules.some(({ space, tenant }) => space === "handler" && tenant === null)) return 0;
  return queues.reduce((sum, queue) => (queue.held ? sum - queue.ready - queue.scheduled : sum), counts.ready + counts.scheduled);
}
