// Sentences of the server: times in the zone that was chosen, tasks as links.

import { TaskLink } from "./link.js";
import { Clock } from "./time.js";
import { html } from "./ui.js";

const INSTANT = /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z/;

/** @param {{text: string, tasks?: string[], whole?: boolean}} props `tasks` are those that it may name; `whole`: it stands
 *   alone and begins with a capital */
export function Told({ text, tasks = [], whole = false }) {
  const pieces = [INSTANT.source, ...tasks.map((id) => id.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"))];
  return html`${(whole ? begun(text) : text).split(new RegExp(`(${pieces.join("|")})`)).map((piece) => {
    if (tasks.includes(piece)) return html`<${TaskLink} id=${piece} short />`;
    return INSTANT.test(piece) ? html`<${Clock} at=${piece} fine=${false} />` : piece;
  })}`;
}

/** Unless it begins with somebody's name. @param {string} text */
function begun(text) {
  return /^(a|an|the|it|its|due|waits|no|nothing|those|attempt) /.test(text) ? text.charAt(0).toUpperCase() + text.slice(1) : text;
}
