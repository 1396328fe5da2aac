// What a text that somebody looks for may be.

import { exists, places } from "./router.js";

/** @typedef {{what: string, text: string, to: string}} Guess */

/** The likeliest first. @param {string} text
 * @returns {Guess[]} */
export function guesses(text) {
  const given = text.trim();
  if (!given) return [];
  /** @type {(Guess | false)[]} */
  const all = [
    /^\d{13,16}$/.test(given) && { what: "Event", text: given, to: places.event(given) },
    /_[0-9a-f]{8}-[0-9a-f-]{4,}/.test(given) && { what: "Task", text: given, to: places.task(given) },
    /^\/.+,.+/.test(given) && { what: "Order", text: given, to: places.order(given) },
    /^\//.test(given) && !given.includes(",") && { what: "Chain", text: given, to: places.chain(given) },
    { what: "Object", text: given, to: places.object(given) },
    { what: "Events of this object", text: given, to: places.stream({ key: given }) },
    /^[\w.-]+$/.test(given) && { what: "Events of this type", text: given, to: places.stream({ return: given }) },
  ];
  return /** @type {Guess[]} */ (all.filter((one) => one && exists(one.to)));
}
