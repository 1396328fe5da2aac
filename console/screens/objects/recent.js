// Recently changed objects, taken from the newest events.

import { api } from "../../data/api.js";
import { isEngineEvent } from "../../data/engine-events.js";
import { eventKeyText } from "../../data/stream-filter.js";
import { useLiveData } from "../../data/live-data.js";
import { formatCount } from "../../data/numbers.js";
import { boundTenant } from "../../data/session.js";
import { Panel } from "../../parts/panel.js";
import { ObjectOrOrderLink } from "../../parts/link.js";
import { EmptyState, LiveView } from "../../parts/states.js";
import { Table } from "../../parts/table.js";
import { RelativeTime } from "../../parts/time.js";
import { html } from "../../parts/ui.js";
import { cliCommand } from "../../parts/copy.js";
import { navigate, screenPaths } from "../../shell/router.js";

/** @typedef {import("../../data/api-types.js").JournalEvent} JournalEvent */
/** @typedef {{id: string, key: string, tenant: string, type: string, last: number, events: number}} RecentObject */
/** Objects in the order of their last change. @typedef {{eventId: number, objects: Map<string, RecentObject>}}
 * RecentObjectData */

/** Maximum events read, and objects kept. */
const MAX_READ_EVENTS = 500;
const MAX_OBJECTS = 500;

/** @param {Map<string, RecentObject>} objects @param {JournalEvent[]} events the oldest first */
function addEventsToObjects(objects, events) {
  const next = new Map(objects);
  for (const event of events) {
    const key = eventKeyText(event);
    if (isEngineEvent(event) || key === null) continue;
    const id = `${event.tenant} ${key}`;
    const before = next.get(id);
    next.delete(id);
    next.set(id, { id, key, tenant: event.tenant ?? "default", type: event.TYPE, last: event.eventId, events: (before?.events ?? 0) + 1 });
  }
  for (const id of next.keys()) {
    if (next.size <= MAX_OBJECTS) break;
    next.delete(id);
  }
  return next;
}

/** @param {{tenant: string | undefined}} props */
export function RecentObjects({ tenant }) {
  const liveObjects = useLiveData({
    read: async (signal) => {
      const page = await api.get("/api/v1/events", { query: { limit: -MAX_READ_EVENTS, tenant }, signal });
      return /** @type {RecentObjectData} */ ({ eventId: page.eventId, objects: addEventsToObjects(new Map(), (page.eventSnapshots ?? []).reverse()) });
    },
    filter: { tenant },
    apply: (data, { events }) => ({ ...data, objects: addEventsToObjects(data.objects, events) }),
  }, [tenant]);
  return html`<${Panel} title="Recently changed" flush aside=${liveObjects.data && `from the newest ${MAX_READ_EVENTS} events`}>
    <${LiveView} live=${liveObjects} lines=${8} errorTitle="The journal could not be loaded">${(/** @type {RecentObjectData} */ { objects }) => html`
      <${Table} label="Recently changed objects" columns=${recentObjectColumns()} rows=${[...objects.values()].reverse()} id=${(/** @type {RecentObject} */ row) => row.id}
        onOpen=${(/** @type {RecentObject} */ row) => navigate(screenPaths.object(row.key, row.tenant))}
        empty=${html`<${EmptyState} title="No recent events with a key" icon="object"><p>Events with a key belong to an object: <code>${cliCommand("emit", "record.published", "--key", "record:1")}</code></p><//>`} />`}<//>
  <//>`;
}

/** @returns {import("../../parts/table.js").Column<RecentObject>[]} */
function recentObjectColumns() {
  return [
    { name: "key", title: "Object", grow: 40, onSmallScreens: true, cell: (row) => html`<${ObjectOrOrderLink} objectKey=${row.key} tenant=${row.tenant} />` },
    { name: "tenant", title: "Tenant", width: 120, hidden: boundTenant.value !== null, cell: (row) => html`<span class="faint">${row.tenant}</span>` },
    { name: "type", title: "Last event", grow: 34, onSmallScreens: true, cell: (row) => html`<span title=${row.type}>${row.type}</span>` },
    { name: "events", title: "Events", width: 80, alignRight: true, cell: (row) => formatCount(row.events) },
    { name: "last", title: "Time", width: 96, onSmallScreens: true, cell: (row) => html`<${RelativeTime} at=${row.last} />` },
  ];
}
