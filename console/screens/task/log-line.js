// One line of a log, truncated to one row.

import { formatTimeWithDayUnlessToday, toMillis } from "../../data/time.js";
import { ToneIcon } from "../../parts/badge.js";
import { classNames, html } from "../../parts/ui.js";

/** Characters of a line that are shown. */
const MAX_SHOWN_CHARS = 1000;

/** ANSI escape sequences of terminals. */
const ANSI_ESCAPE_PATTERN = /\u001b\[[0-9;?]*[A-Za-z]/g;

/** @param {{number: number, line: import("../../data/api-types.js").LogLine, searchText: string, current: boolean, onOpen: () => void}} props */
export function LogLineRow({ number, line, searchText, current, onOpen }) {
  const text = truncateAndStripEscapes(line.message);
  const ms = toMillis(line.time);
  return html`<li class=${classNames("log-line", line.level === "error" && "error", current && "current")} onClick=${() => { if (!getSelection()?.toString()) onOpen(); }}>
    <span class="log-number" aria-hidden="true">${number + 1}</span>
    <time class="log-time" datetime=${line.time}>${ms === null ? "" : formatTimeWithDayUnlessToday(ms)}</time>
    ${line.level === "error" && html`<${ToneIcon} tone="bad" /><span class="visually-hidden">error</span>`}
    <span class="log-text">${highlightMatches(text, searchText)}</span>
  </li>`;
}

/** @param {string} message */
function truncateAndStripEscapes(message) {
  const truncated = message.length > MAX_SHOWN_CHARS ? `${message.slice(0, MAX_SHOWN_CHARS)}…` : message;
  return truncated.replace(ANSI_ESCAPE_PATTERN, "").replace(/\r?\n/g, " ⏎ ");
}

/** @param {string} text @param {string} searchText */
function highlightMatches(text, searchText) {
  if (searchText === "") return text;
  const lowerSearch = searchText.toLowerCase();
  const lowerText = text.toLowerCase();
  // If lower case has another length, positions differ.
  if (lowerText.length !== text.length) return text;
  const parts = [];
  let from = 0;
  for (let at = lowerText.indexOf(lowerSearch); at >= 0; at = lowerText.indexOf(lowerSearch, from)) {
    parts.push(text.slice(from, at), html`<mark>${text.slice(at, at + lowerSearch.length)}</mark>`);
    from = at + lowerSearch.length;
  }
  return [...parts, text.slice(from)];
}
