// What a task was given: the value of its event, or of the order whose step it is.

import { api, below } from "../../data/api.js";
import { useFollowed } from "../../data/follow.js";
import { isStep } from "../../data/tasks.js";
import { Panel } from "../../parts/facts.js";
import { Json } from "../../parts/json.js";
import { EventLink, KeyLink } from "../../parts/link.js";
import { Shown } from "../../parts/states.js";
import { html } from "../../parts/ui.js";

/** @typedef {import("../../data/bodies.js").TaskDetail} TaskDetail */

/** @param {{task: TaskDetail}} props */
export function Payload({ task }) {
  if (task.event_id !== null) return html`<${OfEvent} id=${task.event_id} />`;
  if (isStep(task)) return html`<${OfOrder} path=${/** @type {string} */ (task.key)} tenant=${task.tenant} />`;
  return html`<${Panel} title="Payload"><p class="soft">A run of the source ${task.source} for its collection ${task.collection}, without a payload.</p><//>`;
}

/** @param {{id: number}} props */
function OfEvent({ id }) {
  const event = useFollowed({
    read: (signal) => /** @type {Promise<import("../../data/bodies.js").EventDetail>} */ (api.get(`/api/v1/events/${id}`, { signal, exact: true })),
  }, [id]);
  return html`<${Panel} title="Payload" aside=${html`<span>of the event</span><${EventLink} id=${id} />`}>
    <${Shown} of=${event} lines=${3} what="Its event could not be loaded">
      ${(/** @type {import("../../data/bodies.js").EventDetail} */ data) => html`<${Json} value=${data.event.value ?? null} label="Payload" />`}<//>
  <//>`;
}

/** @param {{path: string, tenant: string}} props */
function OfOrder({ path, tenant }) {
  const order = useFollowed({
    read: (signal) => /** @type {Promise<{value: unknown}>} */ (api.get(`/api/v1/orders/${below(path)}`, { query: { tenant }, signal, exact: true })),
  }, [path, tenant]);
  const gone = order.data === null && /** @type {{status?: number} | null} */ (order.error)?.status === 404;
  return html`<${Panel} title="Payload" aside=${html`<span>the value of</span><${KeyLink} of=${path} tenant=${tenant} />`}>
    ${gone ? html`<p class="soft">The order has ended, and its value is no longer stored.</p>`
      : html`<${Shown} of=${order} lines=${3}>${(/** @type {{value: unknown}} */ { value }) => html`<${Json} value=${value ?? null} label="Payload" />
          <p class="faint">The current value of the order.</p>`}<//>`}
  <//>`;
}
