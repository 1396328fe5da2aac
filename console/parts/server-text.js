// Texts of the server, with times in the selected zone and tasks as links.

import { TaskLink } from "./link.js";
import { TimeOfDay } from "./time.js";
import { html } from "./ui.js";

const TIMESTAMP = /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z/;

/** @param {{text: string, taskIds?: string[], isSentence?: boolean}} props `taskIds` are ids that the text may contain;
 * `isSentence` capitalizes it */
export function ServerText({ text, taskIds = [], isSentence = false }) {
  const patterns = [TIMESTAMP.source, ...taskIds.map((id) => id.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"))];
  return html`${(isSentence ? capitalize(text) : text).split(new RegExp(`(${patterns.join("|")})`)).map((part) => {
    if (taskIds.includes(part)) return html`<${TaskLink} id=${part} short />`;
    return TIMESTAMP.test(part) ? html`<${TimeOfDay} at=${part} withMillis=${false} />` : part;
  })}`;
}

/** Capitalizes the text, unless it starts with a name. @param {string} text */
function capitalize(text) {
  return /^(a|an|the|it|its|due|waits|no|nothing|those|attempt) /.test(text) ? text.charAt(0).toUpperCase() + text.slice(1) : text;
}
