// What an event caused, as a tree. At most so many rows at first: there may be a thousand.

import { keyOf } from "../../data/filter.js";
import { duration } from "../../data/time.js";
import { Button } from "../../parts/button.js";
import { Link, TaskLink } from "../../parts/link.js";
import { html, useMemo, useState } from "../../parts/ui.js";
import { places } from "../../shell/router.js";

/** @typedef {import("../../data/bodies.js").Caused} Caused */
/** @typedef {import("../../data/filter.js").Event} Event */

const FIRST = 100;

/** @param {Caused[]} caused @param {number} depth
 * @returns {{one: Caused, depth: number}[]} */
function flat(caused, depth) {
  return caused.flatMap((one) => [{ one, depth }, ...flat(one.caused, depth + 1)]);
}

/** @param {{event: Event, caused: Caused[], cut: boolean}} props */
export function Tree({ event, caused, cut }) {
  const rows = useMemo(() => flat(caused, 0), [caused]);
  const [most, setMost] = useState(FIRST);
  if (rows.length === 0) return html`<p class="soft">None so far. Events that its tasks emit appear here.</p>`;
  return html`<ul class="tree">
      ${rows.slice(0, most).map(({ one, depth }) => html`<li key=${one.event.eventId} style=${{ paddingLeft: `${depth * 18}px` }}>
        <span class="tree-mark" aria-hidden="true">└</span>
        <${Link} to=${places.event(one.event.eventId)}>${one.event.TYPE}<//>
        <span class="faint mono tree-key">${keyOf(one.event)}</span>
        <span class="faint number" title="after the first event">+${duration((one.event.eventId - event.eventId) / 1000)}</span>
        ${one.task && html`<span class="tree-task"><${TaskLink} id=${one.task} short /></span>`}
      </li>`)}
    </ul>
    ${rows.length > most && html`<${Button} small onClick=${() => setMost(most * 5)}>Show more of ${rows.length}<//>`}
    ${cut && html`<p class="faint">There may be more: the tree is limited to 1,000 events and a depth of 32. Open one of the last events to see more.</p>`}`;
}
