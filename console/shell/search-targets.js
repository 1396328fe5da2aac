// What a text that somebody looks for may be.

import { screenExists, screenPaths } from "./router.js";

/** @typedef {{what: string, text: string, to: string}} SearchTarget */

/** The likeliest first. @param {string} text
 * @returns {SearchTarget[]} */
export function findSearchTargets(text) {
  const given = text.trim();
  if (!given) return [];
  /** @type {(SearchTarget | false)[]} */
  const all = [
    /^\d{13,16}$/.test(given) && { what: "Event", text: given, to: screenPaths.event(given) },
    /_[0-9a-f]{8}-[0-9a-f-]{4,}/.test(given) && { what: "Task", text: given, to: screenPaths.task(given) },
    /^\/.+,.+/.test(given) && { what: "Order", text: given, to: screenPaths.order(given) },
    /^\//.test(given) && !given.includes(",") && { what: "Chain", text: given, to: screenPaths.chain(given) },
    { what: "Object", text: given, to: screenPaths.object(given) },
    { what: "Events of this object", text: given, to: screenPaths.stream({ key: given }) },
    /^[\w.-]+$/.test(given) && { what: "Events of this type", text: given, to: screenPaths.stream({ return: given }) },
  ];
  return /** @type {SearchTarget[]} */ (all.filter((one) => one && screenExists(one.to)));
}
