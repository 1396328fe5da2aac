// Neighbouring events of the same object.

import { api, encodeSegment } from "../../data/api.js";
import { useLiveData } from "../../data/live-data.js";
import { pluralize } from "../../data/numbers.js";
import { Panel } from "../../parts/panel.js";
import { ObjectOrOrderLink, Link } from "../../parts/link.js";
import { LiveView } from "../../parts/states.js";
import { TimeWithDayUnlessToday } from "../../parts/time.js";
import { classNames, html } from "../../parts/ui.js";
import { useShortcuts } from "../../shell/shortcuts.js";
import { navigate, screenPaths } from "../../shell/router.js";

/** @typedef {import("../../data/api-types.js").ObjectDetail} ObjectDetail */
/** @typedef {import("../../data/api-types.js").JournalEvent} JournalEvent */

/** Events shown on each side. */
const EVENTS_EACH_SIDE = 4;

/** @param {{event: JournalEvent, objectKey: string}} props */
export function ObjectEventsPanel({ event, objectKey }) {
  const tenant = event.tenant ?? "default";
  const objectData = useLiveData({
    read: (signal) => /** @type {Promise<ObjectDetail>} */ (api.get(`/api/v1/objects/${encodeSegment(objectKey)}`, { query: { tenant }, signal })),
    filter: { key: objectKey, tenant },
  }, [objectKey, tenant]);
  const events = objectData.data?.events ?? [];
  const currentIndex = events.findIndex((other) => other.eventId === event.eventId);
  /** @param {number} step */
  const openNeighbour = (step) => {
    const next = events[currentIndex + step];
    if (currentIndex >= 0 && next) navigate(screenPaths.event(next.eventId));
  };
  useShortcuts({
    "]": { title: "Next event of the object", run: () => openNeighbour(-1) },
    "[": { title: "Previous event of the object", run: () => openNeighbour(1) },
  });
  return html`<${Panel} title="Events of its object" aside=${objectData.data && pluralize(events.length, "event")}>
    <${LiveView} live=${objectData} lines=${4}>${() => html`<${NeighbouringEvents} events=${events} currentIndex=${currentIndex} />
      <p class="object-link"><${ObjectOrOrderLink} objectKey=${objectKey} tenant=${tenant} /></p>`}<//>
  <//>`;
}

/** @param {{events: JournalEvent[], currentIndex: number}} props */
function NeighbouringEvents({ events, currentIndex }) {
  if (currentIndex < 0) return html`<p class="soft">This event is no longer among the stored events of its object.</p>`;
  const firstShownIndex = Math.max(0, currentIndex - EVENTS_EACH_SIDE);
  const shownEndIndex = Math.min(events.length, currentIndex + EVENTS_EACH_SIDE + 1);
  return html`<ol class="object-events">
    ${firstShownIndex > 0 && html`<li class="faint">${firstShownIndex} newer</li>`}
    ${events.slice(firstShownIndex, shownEndIndex).map((event, index) => html`<li key=${event.eventId} class=${classNames(firstShownIndex + index === currentIndex && "current-event")} aria-current=${firstShownIndex + index === currentIndex ? "true" : undefined}>
      <${TimeWithDayUnlessToday} at=${event.eventId} /><${Link} to=${screenPaths.event(event.eventId)}>${event.TYPE}<//>
    </li>`)}
    ${shownEndIndex < events.length && html`<li class="faint">${events.length - shownEndIndex} older</li>`}
  </ol>`;
}
