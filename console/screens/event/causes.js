// The causes of an event, up to the first one.

import { api } from "../../data/api.js";
import { eventKeyText } from "../../data/stream-filter.js";
import { EventLink, TaskLink } from "../../parts/link.js";
import { html, useEffect, useState } from "../../parts/ui.js";

/** @typedef {import("../../data/api-types.js").EventCause} EventCause */
/** @typedef {import("../../data/api-types.js").EventDetail} EventDetail */

/** Maximum causes that are read. */
const MAX_READ_CAUSES = 8;

/** @param {{cause: EventCause | null}} props */
export function EventCauses({ cause }) {
  const [causes, setCauses] = useState(/** @type {EventDetail[]} */ ([]));
  const directCauseId = cause?.eventId ?? null;
  useEffect(() => {
    const readAbort = new AbortController();
    setCauses([]);
    readCauses(directCauseId, readAbort.signal, setCauses);
    return () => readAbort.abort();
  }, [directCauseId]);
  if (!cause) return html`<p class="soft">No other event: a producer or a schedule emitted it.</p>`;
  const hiddenCount = cause.depth - causes.length;
  return html`<ol class="causes">
    ${hiddenCount > 0 && causes.length === MAX_READ_CAUSES && html`<li class="faint">${hiddenCount} more above</li>`}
    ${[...causes].reverse().map(({ event }) => html`<li key=${event.eventId}>
      <span>${event.TYPE}</span><span class="faint mono">${eventKeyText(event)}</span><${EventLink} id=${event.eventId} /></li>`)}
    ${directCauseId === null && html`<li class="soft">${cause.task ? "a task without an event (run of a source, step of an order)" : "an event of another tenant, or an expired one"}</li>`}
    ${cause.task && html`<li><span class="soft">by task</span><${TaskLink} id=${cause.task} short /></li>`}
  </ol>`;
}

/** @param {number | null} id @param {AbortSignal} signal @param {(causes: EventDetail[]) => void} onCauses */
async function readCauses(id, signal, onCauses) {
  /** @type {EventDetail[]} */
  const causes = [];
  let next = id;
  try {
    while (next !== null && next !== undefined && causes.length < MAX_READ_CAUSES) {
      const detail = /** @type {EventDetail} */ (await api.get(`/api/v1/events/${next}`, { signal }));
      if (signal.aborted) return;
      causes.push(detail);
      onCauses([...causes]);
      next = detail.cause?.eventId ?? null;
    }
  } catch {
    // An event has expired: the causes found so far are shown.
  }
}
