// The objects that something happened to lately, as far as the newest events tell.

import { api } from "../../data/api.js";
import { isEngine, keyOf } from "../../data/filter.js";
import { useFollowed } from "../../data/follow.js";
import { count } from "../../data/numbers.js";
import { bound } from "../../data/session.js";
import { Panel } from "../../parts/facts.js";
import { KeyLink } from "../../parts/link.js";
import { Empty, Shown } from "../../parts/states.js";
import { Table } from "../../parts/table.js";
import { Ago } from "../../parts/time.js";
import { html } from "../../parts/ui.js";
import { cli } from "../../parts/copy.js";
import { go, places } from "../../shell/router.js";

/** @typedef {import("../../data/filter.js").Event} Event */
/** @typedef {{id: string, key: string, tenant: string, type: string, last: number, events: number}} Row */
/** The one that changed last comes last. @typedef {{eventId: number, objects: Map<string, Row>}} Recent */

/** How many events are looked at, and objects kept. */
const EVENTS = 500;
const MOST = 500;

/** @param {Map<string, Row>} objects @param {Event[]} events the oldest first */
function taken(objects, events) {
  const next = new Map(objects);
  for (const event of events) {
    const key = keyOf(event);
    if (isEngine(event) || key === null) continue;
    const id = `${event.tenant} ${key}`;
    const before = next.get(id);
    next.delete(id);
    next.set(id, { id, key, tenant: event.tenant ?? "default", type: event.TYPE, last: event.eventId, events: (before?.events ?? 0) + 1 });
  }
  for (const id of next.keys()) {
    if (next.size <= MOST) break;
    next.delete(id);
  }
  return next;
}

/** @param {{tenant: string | undefined}} props */
export function Recent({ tenant }) {
  const recent = useFollowed({
    read: async (signal) => {
      const seq = await api.get("/api/v1/events", { query: { limit: -EVENTS, tenant }, signal });
      return /** @type {Recent} */ ({ eventId: seq.eventId, objects: taken(new Map(), (seq.eventSnapshots ?? []).reverse()) });
    },
    filter: { tenant },
    apply: (data, { events }) => ({ ...data, objects: taken(data.objects, events) }),
  }, [tenant]);
  return html`<${Panel} title="Recently changed" flush aside=${recent.data && `from the newest ${EVENTS} events`}>
    <${Shown} of=${recent} lines=${8} what="The journal could not be loaded">${(/** @type {Recent} */ { objects }) => html`
      <${Table} label="Recently changed objects" columns=${columns()} rows=${[...objects.values()].reverse()} id=${(/** @type {Row} */ row) => row.id}
        onOpen=${(/** @type {Row} */ row) => go(places.object(row.key, row.tenant))}
        empty=${html`<${Empty} title="No recent events with a key" icon="object"><p>Events with a key belong to an object: <code>${cli("emit", "record.published", "--key", "record:1")}</code></p><//>`} />`}<//>
  <//>`;
}

/** @returns {import("../../parts/table.js").Column<Row>[]} */
function columns() {
  return [
    { name: "key", title: "Object", grow: 40, narrow: true, cell: (row) => html`<${KeyLink} of=${row.key} tenant=${row.tenant} />` },
    { name: "tenant", title: "Tenant", width: 120, hidden: bound.value !== null, cell: (row) => html`<span class="faint">${row.tenant}</span>` },
    { name: "type", title: "Last event", grow: 34, narrow: true, cell: (row) => html`<span title=${row.type}>${row.type}</span>` },
    { name: "events", title: "Events", width: 80, right: true, cell: (row) => count(row.events) },
    { name: "last", title: "Time", width: 96, narrow: true, cell: (row) => html`<${Ago} at=${row.last} />` },
  ];
}
