// Texts of the server, with times in the selected zone and tasks as links.

import { TaskLink } from "./link.js";
import { TimeOfDay } from "./time.js";
import { html } from "./ui.js";

const TIMESTAMP = /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z/;

/** @param {{text: string, tasks?: string[], isSentence?: boolean}} props `tasks` are ids that the text may contain;
 * `isSentence` capitalizes it */
export function ServerText({ text, tasks = [], isSentence = false }) {
  const patterns = [TIMESTAMP.source, ...tasks.map((id) => id.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"))];
  return html`${(isSentence ? capitalize(text) : text).split(new RegExp(`(${patterns.join("|")})`)).map((piece) => {
    if (tasks.includes(piece)) return html`<${TaskLink} id=${piece} short />`;
    return TIMESTAMP.test(piece) ? html`<${TimeOfDay} at=${piece} withMillis=${false} />` : piece;
  })}`;
}

/** Capitalizes the text, unless it starts with a name. @param {string} text */
function capitalize(text) {
  return /^(a|an|the|it|its|due|waits|no|nothing|those|attempt) /.test(text) ? text.charAt(0).toUpperCase() + text.slice(1) : text;
}
