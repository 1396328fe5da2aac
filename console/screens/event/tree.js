// The tree of caused events. It may have a thousand rows, so the first ones are shown.

import { eventKeyText } from "../../data/stream-filter.js";
import { formatDuration } from "../../data/time.js";
import { Button } from "../../parts/button.js";
import { Link, TaskLink } from "../../parts/link.js";
import { html, useMemo, useState } from "../../parts/ui.js";
import { screenPaths } from "../../shell/router.js";

/** @typedef {import("../../data/api-types.js").CausedEvent} CausedEvent */
/** @typedef {import("../../data/api-types.js").JournalEvent} JournalEvent */

const INITIAL_ROW_COUNT = 100;

/** @param {CausedEvent[]} caused @param {number} depth
 * @returns {{child: CausedEvent, depth: number}[]} */
function flattenCausedTree(caused, depth) {
  return caused.flatMap((child) => [{ child, depth }, ...flattenCausedTree(child.caused, depth + 1)]);
}

/** @param {{event: JournalEvent, caused: CausedEvent[], isTruncated: boolean}} props */
export function CausedTree({ event, caused, isTruncated }) {
  const rows = useMemo(() => flattenCausedTree(caused, 0), [caused]);
  const [visibleCount, setVisibleCount] = useState(INITIAL_ROW_COUNT);
  if (rows.length === 0) return html`<p class="soft">None so far. Events that its tasks emit appear here.</p>`;
  return html`<ul class="tree">
      ${rows.slice(0, visibleCount).map(({ child, depth }) => html`<li key=${child.event.eventId} style=${{ paddingLeft: `${depth * 18}px` }}>
        <span class="tree-branch" aria-hidden="true">└</span>
        <${Link} to=${screenPaths.event(child.event.eventId)}>${child.event.TYPE}<//>
        <span class="faint mono tree-key">${eventKeyText(child.event)}</span>
        <span class="faint number" title="after the first event">+${formatDuration((child.event.eventId - event.eventId) / 1000)}</span>
        ${child.task && html`<span class="tree-task"><${TaskLink} id=${child.task} short /></span>`}
      </li>`)}
    </ul>
    ${rows.length > visibleCount && html`<${Button} small onClick=${() => setVisibleCount(visibleCount * 5)}>Show more of ${rows.length}<//>`}
    ${isTruncated && html`<p class="faint">There may be more: the tree is limited to 1,000 events and a depth of 32. Open one of the last events to see more.</p>`}`;
}
