// The events of an object, the newest first, each chained to the one before it, with what became of its tasks.

import { duration } from "../../data/time.js";
import { stringify } from "../../parts/json.js";
import { Shape } from "../../parts/badge.js";
import { EventLink, Link } from "../../parts/link.js";
import { Table } from "../../parts/table.js";
import { Clock } from "../../parts/time.js";
import { html } from "../../parts/ui.js";
import { go, places } from "../../shell/router.js";

/** @typedef {import("../../data/filter.js").Event} Event */
/** @typedef {import("../../data/bodies.js").Task} Task */
/** `gap` is how long after the one before it; null for the first. @typedef {{event: Event, gap: number | null, linked: boolean, tasks: Task[]}} Row */

const MOST_TEXT = 200;
/** Tasks of an event that are drawn. */
const MOST_TASKS = 3;

/** @type {Record<string, import("../../parts/badge.js").Tone>} */
const TONES = { SCHEDULED: "idle", RUNNING: "busy", SUCCESS: "good", FAILED: "bad", CANCELED: "off" };

/** @param {{events: Event[], tasks: Map<number, Task[]>}} props */
export function Chain({ events, tasks }) {
  const rows = events.map((event, index) => {
    const before = events[index + 1];
    return {
      event, tasks: tasks.get(event.eventId) ?? [],
      gap: before ? (event.eventId - before.eventId) / 1000 : null,
      linked: before !== undefined && event.prev === before.eventId,
    };
  });
  return html`<${Table} label="Events, newest first" columns=${COLUMNS} rows=${rows} id=${(/** @type {Row} */ row) => String(row.event.eventId)}
    onOpen=${(/** @type {Row} */ row) => go(places.event(row.event.eventId))} tone=${(/** @type {Row} */ row) => (row.linked ? "linked" : undefined)} />`;
}

/** @type {import("../../parts/table.js").Column<Row>[]} */
const COLUMNS = [
  { name: "time", title: "Time", width: 176, narrow: true, cell: ({ event }) => html`<span class="chain-dot" aria-hidden="true"></span><${Clock} at=${event.eventId} />` },
  { name: "type", title: "Type", grow: 24, narrow: true, cell: ({ event }) => html`<span title=${event.TYPE}>${event.TYPE}${event.sub && html` <span class="faint">${event.sub}</span>`}</span>` },
  { name: "gap", title: "Interval", width: 86, right: true, cell: ({ gap }) => (gap === null ? html`<span class="faint">–</span>` : `+${duration(gap)}`) },
  { name: "tasks", title: "Tasks", width: 78, narrow: true, cell: ({ tasks }) => html`<span class="chain-tasks">${tasks.slice(0, MOST_TASKS).map((task) => html`<${Link} key=${task.id} to=${places.task(task.id)}
    title=${`${task.handler}: ${task.status.toLowerCase()}`}><${Shape} tone=${task.state === "missing" ? "warn" : TONES[task.status] ?? "idle"} /><span class="unseen">${task.handler}: ${task.status}</span><//>`)}
    ${tasks.length > MOST_TASKS && html`<span class="faint">+${tasks.length - MOST_TASKS}</span>`}</span>` },
  { name: "value", title: "Value", grow: 50, cell: ({ event }) => html`<span class="mono soft">${line(event.value)}</span>` },
  { name: "id", title: "Event", width: 150, right: true, cell: ({ event }) => html`<${EventLink} id=${event.eventId} />` },
];

/** @param {unknown} value */
function line(value) {
  if (value === null || value === undefined) return "";
  const text = stringify(value).replace(/\s*\n\s*/g, " ");
  return text.length > MOST_TEXT ? `${text.slice(0, MOST_TEXT)}…` : text;
}
