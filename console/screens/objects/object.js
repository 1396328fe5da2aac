// One object: its lanes and its events.

import { api, encodeSegment } from "../../data/api.js";
import { useLiveData } from "../../data/live-data.js";
import { pluralize } from "../../data/numbers.js";
import { Problem } from "../../data/problem.js";
import { boundTenant } from "../../data/session.js";
import { cliCommand, CopyAsMenu } from "../../parts/copy.js";
import { ScreenHeader, Panel } from "../../parts/panel.js";
import { FilterBar } from "../../parts/filters.js";
import { isOrderPath, Link } from "../../parts/link.js";
import { EmptyState, Notice, LiveView } from "../../parts/states.js";
import { RelativeTime } from "../../parts/time.js";
import { html } from "../../parts/ui.js";
import { screenPaths } from "../../shell/router.js";
import { ObjectEventTable } from "./events.js";
import { LaneCard } from "./lane.js";
import { readObjectLanes } from "./lanes.js";

/** @typedef {import("../../data/api-types.js").ObjectDetail} ObjectDetail */
/** @typedef {import("./lanes.js").ObjectLanes} ObjectLanes */

/** How many events the API returns for an object. */
const MAX_EVENTS_OF_API = 1000;

/** @param {{params: Record<string, string>, query: Record<string, string>}} props */
export default function ObjectScreen({ params, query }) {
  const { key } = params;
  const tenant = boundTenant.value ?? (query.tenant || "default");
  const path = `/api/v1/objects/${encodeSegment(key)}`;
  const liveObject = useLiveData({
    read: (signal) => /** @type {Promise<ObjectDetail>} */ (api.get(path, { query: { tenant }, signal, exactNumbers: true })),
    filter: { key, tenant },
    apply: (data, { events }) => {
      const newEvents = events.filter((event) => event.tenant === tenant && event.eventId > data.last);
      return newEvents.length === 0 ? data : { ...data, last: newEvents[newEvents.length - 1].eventId, events: [...newEvents.reverse(), ...data.events].slice(0, MAX_EVENTS_OF_API) };
    },
  }, [key, tenant]);
  const liveLanes = useLiveData({
    read: (signal) => readObjectLanes(key, tenant, signal),
    filter: { key, tenant, tasks: true },
    minInterval: 700,
    pollInterval: 10_000,
  }, [key, tenant]);
  const events = liveObject.data?.events ?? [];
  const isUnknown = liveObject.data === null && liveObject.error instanceof Problem && liveObject.error.status === 404;
  return html`<div class="object stack">
    <${ScreenHeader} title=${html`<span class="mono">${key}</span>`} subtitle=${html`<span>tenant ${tenant}</span>
      ${liveObject.data && html`<span>${pluralize(events.length, "event")}${events.length === MAX_EVENTS_OF_API ? " or more" : ""}, the last <${RelativeTime} at=${liveObject.data.last} /></span>`}`}>
      <${CopyAsMenu} call=${{ path, query: { tenant } }} cli=${cliCommand("objects", "show", key, ...(tenant === "default" ? [] : ["--tenant", tenant]))} />
    <//>
    ${boundTenant.value === null && html`<${FilterBar} query=${query} fields=${[{ name: "tenant", label: "Tenant", hint: "default", width: 160 }]} />`}
    ${isUnknown ? html`<${UnknownObject} objectKey=${key} tenant=${tenant} />` : html`
      <${Panel} title="Lanes" aside=${liveLanes.data && laneCountText(liveLanes.data)}>
        <${LiveView} live=${liveLanes} lines=${3} errorTitle="The lanes could not be loaded">${(/** @type {ObjectLanes} */ data) => html`<${LaneList} data=${data} objectKey=${key} tenant=${tenant} onChange=${liveLanes.reload} />`}<//>
      <//>
      <${Panel} title="Events" flush aside=${html`<${Link} to=${screenPaths.stream({ key, tenant: query.tenant })}>in the stream<//><${Link} to=${screenPaths.tasks({ key, tenant })}>all tasks<//>`}>
        <${LiveView} live=${liveObject} errorTitle="The object could not be loaded">${(/** @type {ObjectDetail} */ data) => html`
          <${ObjectEventTable} events=${data.events} tasks=${liveLanes.data?.tasks ?? new Map()} />
          <p class="history-end faint">${historyEndText(data)}</p>`}<//>
      <//>`}
  </div>`;
}

/** @param {ObjectLanes} data */
function laneCountText({ lanes }) {
  const haltedCount = lanes.filter((lane) => lane.halted).length;
  return haltedCount > 0 ? `${haltedCount} of ${pluralize(lanes.length, "lane")} halted` : pluralize(lanes.length, "lane");
}

/** @param {{data: ObjectLanes, objectKey: string, tenant: string, onChange: () => void}} props */
function LaneList({ data, objectKey, tenant, onChange }) {
  const { lanes, missing, hasMore } = data;
  return html`
    ${missing.length > 0 && html`<${Notice} tone="warn"><span>${pluralize(missing.length, "task")} ${missing.length === 1 ? "is" : "are"} missing: the handler ${missing[0].handler} is no longer defined.</span>
      <${Link} to=${screenPaths.tasks({ key: objectKey, tenant, status: "missing" })}>Show tasks<//><//>`}
    ${lanes.length === 0
      ? html`<p class="soft">No open tasks for this object.</p>`
      : html`<ul class="lanes">${lanes.map((lane) => html`<${LaneCard} key=${lane.handler} lane=${lane} objectKey=${objectKey} tenant=${tenant} onChange=${onChange} />`)}</ul>`}
    ${hasMore && html`<p class="faint">There may be more lanes: not all waiting tasks were checked.</p>`}`;
}

/** @param {ObjectDetail} data */
function historyEndText({ events }) {
  const first = events.at(-1);
  if (!first) return "Its events have expired; only the id of the last one is stored.";
  return first.prev === null ? "First event of the object." : "Older events have expired or are not shown.";
}

/** @param {{objectKey: string, tenant: string}} props */
function UnknownObject({ objectKey, tenant }) {
  return html`<${EmptyState} title="No events" icon="object">
    <p>No event of the tenant <b>${tenant}</b> has the key <code>${objectKey}</code>. Keys are exact, and each tenant has its own objects.</p>
    ${isOrderPath(objectKey) && html`<p>It looks like the path of an order: <${Link} to=${screenPaths.order(objectKey)}>${objectKey}<//></p>`}
    <p><${Link} to="/objects">Find another object<//></p><//>`;
}
