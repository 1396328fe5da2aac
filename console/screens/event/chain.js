// The events of the same object around this one.

import { api, segment } from "../../data/api.js";
import { useFollowed } from "../../data/follow.js";
import { counted } from "../../data/numbers.js";
import { Panel } from "../../parts/facts.js";
import { KeyLink, Link } from "../../parts/link.js";
import { Shown } from "../../parts/states.js";
import { Clock } from "../../parts/time.js";
import { classes, html } from "../../parts/ui.js";
import { useShortcuts } from "../../shell/keys.js";
import { go, places } from "../../shell/router.js";

/** @typedef {import("../../data/bodies.js").ObjectDetail} ObjectDetail */
/** @typedef {import("../../data/filter.js").Event} Event */

/** How many are shown on each side. */
const AROUND = 4;

/** @param {{event: Event, objectKey: string}} props */
export function Chain({ event, objectKey }) {
  const tenant = event.tenant ?? "default";
  const object = useFollowed({
    read: (signal) => /** @type {Promise<ObjectDetail>} */ (api.get(`/api/v1/objects/${segment(objectKey)}`, { query: { tenant }, signal })),
    filter: { key: objectKey, tenant },
  }, [objectKey, tenant]);
  const events = object.data?.events ?? [];
  const at = events.findIndex((one) => one.eventId === event.eventId);
  /** @param {number} step */
  const move = (step) => {
    const next = events[at + step];
    if (at >= 0 && next) go(places.event(next.eventId));
  };
  useShortcuts({
    "]": { what: "Next event of the object", run: () => move(-1) },
    "[": { what: "Previous event of the object", run: () => move(1) },
  });
  return html`<${Panel} title="Events of its object" aside=${object.data && counted(events.length, "event")}>
    <${Shown} of=${object} lines=${4}>${() => html`<${Around} events=${events} at=${at} />
      <p class="chain-more"><${KeyLink} of=${objectKey} tenant=${tenant} /></p>`}<//>
  <//>`;
}

/** @param {{events: Event[], at: number}} props */
function Around({ events, at }) {
  if (at < 0) return html`<p class="soft">This event is no longer among the stored events of its object.</p>`;
  const from = Math.max(0, at - AROUND);
  const to = Math.min(events.length, at + AROUND + 1);
  return html`<ol class="chain">
    ${from > 0 && html`<li class="faint">${from} newer</li>`}
    ${events.slice(from, to).map((one, index) => html`<li key=${one.eventId} class=${classes(from + index === at && "here")} aria-current=${from + index === at ? "true" : undefined}>
      <${Clock} at=${one.eventId} /><${Link} to=${places.event(one.eventId)}>${one.TYPE}<//>
    </li>`)}
    ${to < events.length && html`<li class="faint">${events.length - to} older</li>`}
  </ol>`;
}
