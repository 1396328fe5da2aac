// The causes of an event, up to the first one.

import { api } from "../../data/api.js";
import { eventKeyText } from "../../data/filter.js";
import { EventLink, TaskLink } from "../../parts/link.js";
import { html, useEffect, useState } from "../../parts/ui.js";

/** @typedef {import("../../data/api-types.js").EventCause} EventCause */
/** @typedef {import("../../data/api-types.js").EventDetail} EventDetail */

/** Maximum causes that are read. */
const MAX_CAUSES = 8;

/** @param {{cause: EventCause | null}} props */
export function Causes({ cause }) {
  const [ancestors, setAncestors] = useState(/** @type {EventDetail[]} */ ([]));
  const first = cause?.eventId ?? null;
  useEffect(() => {
    const readAbort = new AbortController();
    setAncestors([]);
    readCauses(first, readAbort.signal, setAncestors);
    return () => readAbort.abort();
  }, [first]);
  if (!cause) return html`<p class="soft">No other event: a producer or a schedule emitted it.</p>`;
  const depth = cause.depth - ancestors.length;
  return html`<ol class="causes">
    ${depth > 0 && ancestors.length === MAX_CAUSES && html`<li class="faint">${depth} more above</li>`}
    ${[...ancestors].reverse().map(({ event }) => html`<li key=${event.eventId}>
      <span>${event.TYPE}</span><span class="faint mono">${eventKeyText(event)}</span><${EventLink} id=${event.eventId} /></li>`)}
    ${first === null && html`<li class="soft">${cause.task ? "a task without an event (run of a source, step of an order)" : "an event of another tenant, or an expired one"}</li>`}
    ${cause.task && html`<li><span class="soft">by task</span><${TaskLink} id=${cause.task} short /></li>`}
  </ol>`;
}

/** @param {number | null} id @param {AbortSignal} signal @param {(above: EventDetail[]) => void} show */
async function readCauses(id, signal, show) {
  /** @type {EventDetail[]} */
  const found = [];
  let next = id;
  try {
    while (next !== null && next !== undefined && found.length < MAX_CAUSES) {
      const detail = /** @type {EventDetail} */ (await api.get(`/api/v1/events/${next}`, { signal }));
      if (signal.aborted) return;
      found.push(detail);
      show([...found]);
      next = detail.cause?.eventId ?? null;
    }
  } catch {
    // An event has expired: the causes found so far are shown.
  }
}
