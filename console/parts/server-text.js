// Sentences of the server: times in the zone that was chosen, tasks as links.

import { TaskLink } from "./link.js";
import { TimeOfDay } from "./time.js";
import { html } from "./ui.js";

const TIMESTAMP = /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z/;

/** @param {{text: string, tasks?: string[], whole?: boolean}} props `tasks` are those that it may name; `whole`: it stands
 *   alone and begins with a capital */
export function ServerText({ text, tasks = [], whole = false }) {
  const pieces = [TIMESTAMP.source, ...tasks.map((id) => id.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"))];
  return html`${(whole ? capitalize(text) : text).split(new RegExp(`(${pieces.join("|")})`)).map((piece) => {
    if (tasks.includes(piece)) return html`<${TaskLink} id=${piece} short />`;
    return TIMESTAMP.test(piece) ? html`<${TimeOfDay} at=${piece} fine=${false} />` : piece;
  })}`;
}

/** Unless it begins with somebody's name. @param {string} text */
function capitalize(text) {
  return /^(a|an|the|it|its|due|waits|no|nothing|those|attempt) /.test(text) ? text.charAt(0).toUpperCase() + text.slice(1) : text;
}
