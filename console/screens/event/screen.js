// One event: its value, object, causes, tasks and caused events.

import { api, ExactNumber } from "../../data/api.js";
import { describeEngineEvent, isEngineEvent, taskIdOfTaskEvent } from "../../data/engine-events.js";
import { eventKeyText } from "../../data/stream-filter.js";
import { useLiveData } from "../../data/live-data.js";
import { pluralize } from "../../data/numbers.js";
import { cliCommand, CopyAsMenu, CopyButton } from "../../parts/copy.js";
import { PropertyList, ScreenHeader, Panel } from "../../parts/panel.js";
import { JsonView } from "../../parts/json.js";
import { EventLink, ObjectOrOrderLink, Link, TaskLink } from "../../parts/link.js";
import { EmptyState, LiveView } from "../../parts/states.js";
import { DateTime } from "../../parts/time.js";
import { html } from "../../parts/ui.js";
import { screenPaths } from "../../shell/router.js";
import { EventCauses } from "./causes.js";
import { ObjectEventsPanel } from "./object-events.js";
import { EventTasks } from "./tasks.js";
import { CausedTree } from "./tree.js";

/** @typedef {import("../../data/api-types.js").EventDetail} EventDetail */
/** @typedef {import("../../data/api-types.js").JournalEvent} JournalEvent */

/** @param {{params: Record<string, string>}} props */
export default function EventScreen({ params }) {
  const id = Number(params.id);
  if (Number.isSafeInteger(id) && id > 0) return html`<${EventPage} id=${id} />`;
  return html`<${EmptyState} title="Not an event id"><p>Ids are whole numbers, such as 1794739675104000.</p><//>`;
}

/** @param {{id: number}} props */
function EventPage({ id }) {
  const path = `/api/v1/events/${id}`;
  const detail = useLiveData({
    read: (signal) => /** @type {Promise<EventDetail>} */ (api.get(path, { signal, exactNumbers: true })),
    filter: { tasks: true },
    minInterval: 500,
    // Tasks of caused events can add events to the tree, too.
    apply: (data, { tasks }) => {
      const treeIds = new Set([data.event.eventId, ...causedEventIds(data.caused)]);
      return tasks.some((change) => change.event_id !== null && treeIds.has(change.event_id)) ? null : data;
    },
  }, [id]);
  return html`<${LiveView} live=${detail} errorTitle="The event could not be loaded">
    ${(/** @type {EventDetail} */ data) => html`<${EventDetails} data=${data} path=${path} />`}
  <//>`;
}

/** @param {EventDetail["caused"]} caused @returns {number[]} */
function causedEventIds(caused) {
  return caused.flatMap((child) => [child.event.eventId, ...causedEventIds(child.caused)]);
}

/** @param {{data: EventDetail, path: string}} props */
function EventDetails({ data, path }) {
  const { event, tasks, caused, cause, causedTruncated } = data;
  const isEngine = isEngineEvent(event);
  const taskId = taskIdOfTaskEvent(event);
  const key = taskId ? null : eventKeyText(event);
  return html`
    <${ScreenHeader} title=${event.TYPE} subtitle=${html`${isEngine && html`<span>${describeEngineEvent(event)}</span>`}<${DateTime} at=${event.eventId} />`}>
      <${CopyAsMenu} call=${{ path }} cli=${cliCommand("events", "show", String(event.eventId))} />
    <//>
    <div class="columns">
      <div class="stack">
        ${isEngine
          ? html`<${Panel} title="Fields"><${JsonView} value=${engineEventFields(event)} label="Fields" /><//>`
          : html`<${Panel} title="Value"><${JsonView} value=${event.value ?? null} label="Value" /><//>`}
        ${!isEngine && html`<${EventTasks} tasks=${tasks} />`}
        <${Panel} title="Caused events" aside=${causedTruncated ? "not all are shown" : pluralize(causedEventIds(caused).length, "event")}>
          <${CausedTree} event=${event} caused=${caused} isTruncated=${causedTruncated} />
        <//>
      </div>
      <div class="stack">
        <${Panel} title="Event">
          <${PropertyList} items=${[
            ["Id", html`<span class="mono">${event.eventId}</span> <${CopyButton} text=${String(event.eventId)} label="event id" />`],
            ["Type", html`<${Link} to=${screenPaths.stream({ return: event.TYPE })}>${event.TYPE}<//>`],
            ["Object", key !== null && html`<${ObjectOrOrderLink} objectKey=${key} tenant=${event.tenant} />`],
            ["Task", taskId && html`<${TaskLink} id=${taskId} />`],
            ["Sub", event.sub],
            ["Tenant", event.tenant],
            ["Previous event", event.prev ? html`<${EventLink} id=${event.prev} />` : event.prev === null && "none: the first of its object"],
            ["Published by", isEngine && "the engine"],
          ]} />
        <//>
        ${event.context && Object.keys(event.context).length > 0 && html`<${Panel} title="Context">
          <${PropertyList} items=${Object.entries(event.context).map(([name, value]) => [name, formatContextValue(value)])} /><//>`}
        <${Panel} title="Caused by"><${EventCauses} cause=${cause} /><//>
        ${!isEngine && typeof event.key === "string" && html`<${ObjectEventsPanel} event=${event} objectKey=${event.key} />`}
      </div>
    </div>`;
}

/** @param {unknown} value */
function formatContextValue(value) {
  return value instanceof ExactNumber ? value.text : String(value);
}

/** The fields of an engine event, without id and type. @param {JournalEvent} event */
function engineEventFields(event) {
  const { eventId: _, TYPE: __, ...rest } = event;
  return rest;
}
