// The payload of a task: the value of its event or order.

import { api, encodeOrderOrChainPath } from "../../data/api.js";
import { useLiveData } from "../../data/live-data.js";
import { isOrderStepTask } from "../../data/tasks.js";
import { Panel } from "../../parts/panel.js";
import { JsonView } from "../../parts/json.js";
import { EventLink, ObjectOrOrderLink } from "../../parts/link.js";
import { LiveView } from "../../parts/states.js";
import { html } from "../../parts/ui.js";

/** @typedef {import("../../data/api-types.js").TaskDetail} TaskDetail */

/** @param {{task: TaskDetail}} props */
export function TaskPayload({ task }) {
  if (task.event_id !== null) return html`<${EventPayload} id=${task.event_id} />`;
  if (isOrderStepTask(task)) return html`<${OrderPayload} path=${/** @type {string} */ (task.key)} tenant=${task.tenant} />`;
  return html`<${Panel} title="Payload"><p class="soft">A run of the source ${task.source} for its collection ${task.collection}, without a payload.</p><//>`;
}

/** @param {{id: number}} props */
function EventPayload({ id }) {
  const event = useLiveData({
    read: (signal) => /** @type {Promise<import("../../data/api-types.js").EventDetail>} */ (api.get(`/api/v1/events/${id}`, { signal, exactNumbers: true })),
  }, [id]);
  return html`<${Panel} title="Payload" aside=${html`<span>of the event</span><${EventLink} id=${id} />`}>
    <${LiveView} live=${event} lines=${3} errorTitle="Its event could not be loaded">
      ${(/** @type {import("../../data/api-types.js").EventDetail} */ data) => html`<${JsonView} value=${data.event.value ?? null} label="Payload" />`}<//>
  <//>`;
}

/** @param {{path: string, tenant: string}} props */
function OrderPayload({ path, tenant }) {
  const order = useLiveData({
    read: (signal) => /** @type {Promise<{value: unknown}>} */ (api.get(`/api/v1/orders/${encodeOrderOrChainPath(path)}`, { query: { tenant }, signal, exactNumbers: true })),
  }, [path, tenant]);
  const isNotFound = order.data === null && /** @type {{status?: number} | null} */ (order.error)?.status === 404;
  return html`<${Panel} title="Payload" aside=${html`<span>the value of</span><${ObjectOrOrderLink} objectKey=${path} tenant=${tenant} />`}>
    ${isNotFound ? html`<p class="soft">The order has ended, and its value is no longer stored.</p>`
      : html`<${LiveView} live=${order} lines=${3}>${(/** @type {{value: unknown}} */ { value }) => html`<${JsonView} value=${value ?? null} label="Payload" />
          <p class="faint">The current value of the order.</p>`}<//>`}
  <//>`;
}
