// What the overview knows: several calls, read together. What this token may not read is left out.

import { api } from "../../data/api.js";
import { bound } from "../../data/session.js";

/** @typedef {{path: string, state: string, stranded: {node: string, orders: number}[], rules: import("../../data/bodies.js").Rule[]}} Chain */

/** @typedef {{eventId: number, handlers: import("../../data/bodies.js").Handler[], failures: import("../../data/bodies.js").Task[],
 *   nodes: import("../../data/bodies.js").Node[] | null, health: import("../../data/bodies.js").Health | null, chains: Chain[]}} Facts */

/** @param {AbortSignal} signal
 * @returns {Promise<Facts>} */
export async function read(signal) {
  const [handlers, failed, nodes, health, chains] = await Promise.all([
    api.get("/api/v1/handlers", { signal }),
    api.get("/api/v1/tasks", { query: { status: "FAILED", limit: 8 }, signal }),
    bound.value === null ? api.get("/api/v1/nodes", { signal }) : null,
    api.get("/healthz", { signal }),
    api.get("/api/v1/chains", { signal }),
  ]);
  return {
    eventId: handlers.eventId, handlers: handlers.handlers, failures: failed.tasks, nodes: nodes?.nodes ?? null, health,
    chains: chains.chains,
  };
}
