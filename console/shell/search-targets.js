// Finds the screens that a search text may refer to.

import { screenExists, screenPaths } from "./router.js";

/** @typedef {{kind: string, text: string, to: string}} SearchTarget */

/** Most likely first. @param {string} text
 * @returns {SearchTarget[]} */
export function findSearchTargets(text) {
  const query = text.trim();
  if (!query) return [];
  /** @type {(SearchTarget | false)[]} */
  const candidates = [
    /^\d{13,16}$/.test(query) && { kind: "Event", text: query, to: screenPaths.event(query) },
    /_[0-9a-f]{8}-[0-9a-f-]{4,}/.test(query) && { kind: "Task", text: query, to: screenPaths.task(query) },
    /^\/.+,.+/.test(query) && { kind: "Order", text: query, to: screenPaths.order(query) },
    /^\//.test(query) && !query.includes(",") && { kind: "Chain", text: query, to: screenPaths.chain(query) },
    { kind: "Object", text: query, to: screenPaths.object(query) },
    { kind: "Events of this object", text: query, to: screenPaths.stream({ key: query }) },
    /^[\w.-]+$/.test(query) && { kind: "Events of this type", text: query, to: screenPaths.stream({ return: query }) },
  ];
  return /** @type {SearchTarget[]} */ (candidates.filter((candidate) => candidate && screenExists(candidate.to)));
}
