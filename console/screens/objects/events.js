// The events of an object, newest first, with the status of their tasks.

import { formatDuration } from "../../data/time.js";
import { stringifyExact } from "../../parts/json.js";
import { ToneIcon } from "../../parts/badge.js";
import { EventLink, Link } from "../../parts/link.js";
import { Table } from "../../parts/table.js";
import { TimeWithDayUnlessToday } from "../../parts/time.js";
import { html } from "../../parts/ui.js";
import { navigate, screenPaths } from "../../shell/router.js";

/** @typedef {import("../../data/api-types.js").JournalEvent} JournalEvent */
/** @typedef {import("../../data/api-types.js").Task} Task */
/** `interval` is the time since the previous event; null for the first.
 * @typedef {{event: JournalEvent, interval: number | null, isLinked: boolean, tasks: Task[]}} ObjectEventRow */

const MAX_VALUE_CHARS = 200;
/** Maximum tasks shown per event. */
const MAX_SHOWN_TASKS = 3;

/** @type {Record<string, import("../../parts/badge.js").Tone>} */
const TASK_STATUS_TONES = { SCHEDULED: "idle", RUNNING: "busy", SUCCESS: "good", FAILED: "bad", CANCELED: "off" };

/** @param {{events: JournalEvent[], tasks: Map<number, Task[]>}} props */
export function ObjectEventTable({ events, tasks }) {
  const rows = events.map((event, index) => {
    const previous = events[index + 1];
    return {
      event, tasks: tasks.get(event.eventId) ?? [],
      interval: previous ? (event.eventId - previous.eventId) / 1000 : null,
      isLinked: previous !== undefined && event.prev === previous.eventId,
    };
  });
  return html`<${Table} label="Events, newest first" columns=${COLUMNS} rows=${rows} id=${(/** @type {ObjectEventRow} */ row) => String(row.event.eventId)}
    onOpen=${(/** @type {ObjectEventRow} */ row) => navigate(screenPaths.event(row.event.eventId))} rowClass=${(/** @type {ObjectEventRow} */ row) => (row.isLinked ? "linked" : undefined)} />`;
}

/** @type {import("../../parts/table.js").Column<ObjectEventRow>[]} */
const COLUMNS = [
  { name: "time", title: "Time", width: 176, onSmallScreens: true, cell: ({ event }) => html`<span class="event-dot" aria-hidden="true"></span><${TimeWithDayUnlessToday} at=${event.eventId} />` },
  { name: "type", title: "Type", grow: 24, onSmallScreens: true, cell: ({ event }) => html`<span title=${event.TYPE}>${event.TYPE}${event.sub && html` <span class="faint">${event.sub}</span>`}</span>` },
  { name: "interval", title: "Interval", width: 86, alignRight: true, cell: ({ interval }) => (interval === null ? html`<span class="faint">–</span>` : `+${formatDuration(interval)}`) },
  { name: "tasks", title: "Tasks", width: 78, onSmallScreens: true, cell: ({ tasks }) => html`<span class="event-tasks">${tasks.slice(0, MAX_SHOWN_TASKS).map((task) => html`<${Link} key=${task.id} to=${screenPaths.task(task.id)}
    title=${`${task.handler}: ${task.status.toLowerCase()}`}><${ToneIcon} tone=${task.state === "missing" ? "warn" : TASK_STATUS_TONES[task.status] ?? "idle"} /><span class="visually-hidden">${task.handler}: ${task.status}</span><//>`)}
    ${tasks.length > MAX_SHOWN_TASKS && html`<span class="faint">+${tasks.length - MAX_SHOWN_TASKS}</span>`}</span>` },
  { name: "value", title: "Value", grow: 50, cell: ({ event }) => html`<span class="mono soft">${valueText(event.value)}</span>` },
  { name: "id", title: "Event", width: 150, alignRight: true, cell: ({ event }) => html`<${EventLink} id=${event.eventId} />` },
];

/** @param {unknown} value */
function valueText(value) {
  if (value === null || value === undefined) return "";
  const text = stringifyExact(value).replace(/\s*\n\s*/g, " ");
  return text.length > MAX_VALUE_CHARS ? `${text.slice(0, MAX_VALUE_CHARS)}…` : text;
}
