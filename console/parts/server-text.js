// Texts of the server, with times in the selected zone and tasks as links.

import { TaskLink } from "./link.js";
import { TimeWithDayUnlessToday } from "./time.js";
import { html } from "./ui.js";

const TIMESTAMP_PATTERN = /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z/;

/** @param {{text: string, taskIds?: string[], isSentence?: boolean}} props `taskIds` are ids that the text may contain;
 * `isSentence` capitalizes it */
export function ServerText({ text, taskIds = [], isSentence = false }) {
  const patterns = [TIMESTAMP_PATTERN.source, ...taskIds.map((id) => id.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"))];
  return html`${(isSentence ? capitalizeUnlessName(text) : text).split(new RegExp(`(${patterns.join("|")})`)).map((part) => {
    if (taskIds.includes(part)) return html`<${TaskLink} id=${part} short />`;
    return TIMESTAMP_PATTERN.test(part) ? html`<${TimeWithDayUnlessToday} at=${part} withMillis=${false} />` : part;
  })}`;
}

/** Capitalizes the text, unless it starts with a name. @param {string} text */
function capitalizeUnlessName(text) {
  return /^(a|an|the|it|its|due|waits|no|nothing|those|attempt) /.test(text) ? text.charAt(0).toUpperCase() + text.slice(1) : text;
}
