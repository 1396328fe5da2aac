// One event: what it carries, where it stands among its object's, why it was, and what came of it.

import { api, Digits } from "../../data/api.js";
import { isEngine, keyOf, taskOf } from "../../data/filter.js";
import { useFollowed } from "../../data/follow.js";
import { counted } from "../../data/numbers.js";
import { cli, CopyAs, CopyText } from "../../parts/copy.js";
import { Facts, Head, Panel } from "../../parts/facts.js";
import { Json } from "../../parts/json.js";
import { EventLink, KeyLink, Link, TaskLink } from "../../parts/link.js";
import { Empty, Shown } from "../../parts/states.js";
import { Full } from "../../parts/time.js";
import { html } from "../../parts/ui.js";
import { places } from "../../shell/router.js";
import { Causes } from "./causes.js";
import { Chain } from "./chain.js";
import { Tasks } from "./tasks.js";
import { Tree } from "./tree.js";

/** @typedef {import("../../data/bodies.js").EventDetail} EventDetail */
/** @typedef {import("../../data/filter.js").Event} Event */

/** @param {{params: Record<string, string>}} props */
export default function Screen({ params }) {
  const id = Number(params.id);
  if (Number.isSafeInteger(id) && id > 0) return html`<${One} id=${id} />`;
  return html`<${Empty} title="Not an event id"><p>Ids are whole numbers, such as 1794739675104000.</p><//>`;
}

/** @param {{id: number}} props */
function One({ id }) {
  const path = `/api/v1/events/${id}`;
  const detail = useFollowed({
    read: (signal) => /** @type {Promise<EventDetail>} */ (api.get(path, { signal, exact: true })),
    filter: { tasks: true },
    calm: 500,
    // What its tasks emit, and what those of that emit, belongs to the tree.
    apply: (data, { tasks }) => {
      const tree = new Set([data.event.eventId, ...below(data.caused)]);
      return tasks.some((change) => change.event_id !== null && tree.has(change.event_id)) ? null : data;
    },
  }, [id]);
  return html`<${Shown} of=${detail} what="The event could not be loaded">
    ${(/** @type {EventDetail} */ data) => html`<${Detail} data=${data} path=${path} />`}
  <//>`;
}

/** @param {EventDetail["caused"]} caused @returns {number[]} */
function below(caused) {
  return caused.flatMap((one) => [one.event.eventId, ...below(one.caused)]);
}

/** @param {{data: EventDetail, path: string}} props */
function Detail({ data, path }) {
  const { event, tasks, caused, cause, causedCut } = data;
  const engine = isEngine(event);
  const task = taskOf(event);
  const key = task ? null : keyOf(event);
  return html`
    <${Head} title=${event.TYPE} sub=${html`<${Full} at=${event.eventId} />`}>
      <${CopyAs} call=${{ path }} cli=${cli("events", "show", String(event.eventId))} />
    <//>
    <div class="columns">
      <div class="stack">
        ${engine
          ? html`<${Panel} title="Fields"><${Json} value=${fields(event)} label="Fields" /><//>`
          : html`<${Panel} title="Value"><${Json} value=${event.value ?? null} label="Value" /><//>`}
        ${!engine && html`<${Tasks} tasks=${tasks} />`}
        <${Panel} title="Caused events" aside=${causedCut ? "not all are shown" : counted(below(caused).length, "event")}>
          <${Tree} event=${event} caused=${caused} cut=${causedCut} />
        <//>
      </div>
      <div class="stack">
        <${Panel} title="Event">
          <${Facts} of=${[
            ["Id", html`<span class="mono">${event.eventId}</span> <${CopyText} text=${String(event.eventId)} what="event id" />`],
            ["Type", html`<${Link} to=${places.stream({ return: event.TYPE })}>${event.TYPE}<//>`],
            ["Object", key !== null && html`<${KeyLink} of=${key} tenant=${event.tenant} />`],
            ["Task", task && html`<${TaskLink} id=${task} />`],
            ["Sub", event.sub],
            ["Tenant", event.tenant],
            ["Previous event", event.prev ? html`<${EventLink} id=${event.prev} />` : event.prev === null && "none: the first of its object"],
            ["Published by", engine && "the engine"],
          ]} />
        <//>
        ${event.context && Object.keys(event.context).length > 0 && html`<${Panel} title="Context">
          <${Facts} of=${Object.entries(event.context).map(([name, value]) => [name, text(value)])} /><//>`}
        <${Panel} title="Caused by"><${Causes} cause=${cause} /><//>
        ${!engine && typeof event.key === "string" && html`<${Chain} event=${event} objectKey=${event.key} />`}
      </div>
    </div>`;
}

/** @param {unknown} value */
function text(value) {
  return value instanceof Digits ? value.text : String(value);
}

/** The engine's own events show their fields beside these. @param {Event} event */
function fields(event) {
  const { eventId: _, TYPE: __, ...rest } = event;
  return rest;
}
