// The attempts of a task, as a timeline and as a table.

import { toMillis } from "../../data/time.js";
import { pluralize } from "../../data/numbers.js";
import { Badge } from "../../parts/badge.js";
import { Panel } from "../../parts/panel.js";
import { Table } from "../../parts/table.js";
import { Timeline } from "../../parts/timeline.js";
import { TimeWithDayUnlessToday, Duration } from "../../parts/time.js";
import { html } from "../../parts/ui.js";

/** @typedef {import("../../data/api-types.js").TaskDetail} TaskDetail */
/** @typedef {import("../../parts/badge.js").Tone} Tone */
/** @typedef {{number: number, started_at: string, ended_at: string, end: string, error: string | null}} AttemptRow */

/** Attempts on the timeline: the latest ones. */
const MAX_TIMELINE_ATTEMPTS = 12;

/** Labels of attempt results. @type {Record<string, [Tone, string]>} */
const ATTEMPT_RESULT_LABELS = {
  succeeded: ["good", "Succeeded"], failed: ["bad", "Failed"], crashed: ["bad", "Crashed"], canceled: ["off", "Cancelled"],
  snoozed: ["idle", "Snoozed"], released: ["idle", "Released"], running: ["busy", "Running"],
};

/** @param {{task: TaskDetail}} props */
export function AttemptPanel({ task }) {
  const rows = listAttempts(task);
  return html`<${Panel} title="Attempts" flush aside=${pluralize(task.attempt, "attempt")}>
    <div class="attempts-timeline"><${Timeline} label="Attempts and waiting times" nameWidth=${96} rows=${timelineRows(task, rows)} /></div>
    ${rows.length > 0 && html`<${Table} label="Attempts" hasShortcuts=${false} columns=${COLUMNS} rows=${[...rows].reverse()} id=${(/** @type {AttemptRow} */ row) => String(row.number)} />`}
  <//>`;
}

/** @param {TaskDetail} task
 * @returns {AttemptRow[]} */
function listAttempts({ attempts, running }) {
  const runningAttempts = running ? [{ number: running.number, started_at: running.started_at, ended_at: "", end: "running", error: null }] : [];
  return [...attempts, ...runningAttempts];
}

/** @param {TaskDetail} task @param {AttemptRow[]} rows
 * @returns {import("../../parts/timeline.js").TimelineRow[]} */
function timelineRows(task, rows) {
  const drawn = rows.slice(-MAX_TIMELINE_ATTEMPTS);
  let previousEnd = toMillis(rows.length > drawn.length ? rows[rows.length - drawn.length - 1].ended_at : task.created_at) ?? 0;
  /** @type {import("../../parts/timeline.js").TimelineRow[]} */
  const rowsOfTimeline = drawn.map((row) => {
    const from = toMillis(row.started_at) ?? previousEnd;
    const to = toMillis(row.ended_at);
    const [tone, label] = ATTEMPT_RESULT_LABELS[row.end] ?? ["idle", row.end];
    /** @type {import("../../parts/timeline.js").TimelineBar[]} */
    const bars = [{ from, to, tone, title: `Attempt ${row.number}, ${label.toLowerCase()}` }];
    if (from > previousEnd) bars.unshift({ from: previousEnd, to: from, tone: "idle", title: "Waited" });
    previousEnd = to ?? from;
    return { name: `Attempt ${row.number}`, bars };
  });
  if (task.status === "SCHEDULED") rowsOfTimeline.push({ name: "Waiting", bars: [{ from: previousEnd, to: null, tone: "idle", title: "Waiting" }] });
  return rowsOfTimeline;
}

/** @type {import("../../parts/table.js").Column<AttemptRow>[]} */
const COLUMNS = [
  { name: "number", title: "No.", width: 52, alignRight: true, onSmallScreens: true, cell: (row) => row.number },
  { name: "end", title: "Result", width: 112, onSmallScreens: true, cell: ({ end }) => html`<${Badge} tone=${(ATTEMPT_RESULT_LABELS[end] ?? ["idle"])[0]}>${(ATTEMPT_RESULT_LABELS[end] ?? ["", end])[1]}<//>` },
  { name: "started", title: "Started", width: 170, cell: (row) => html`<${TimeWithDayUnlessToday} at=${row.started_at} />` },
  { name: "duration", title: "Duration", width: 104, alignRight: true, onSmallScreens: true, cell: (row) => html`<${Duration} from=${row.started_at} to=${row.ended_at} />` },
  { name: "error", title: "Error", grow: 60, cell: (row) => html`<span class="bad-text" title=${row.error}>${row.error}</span>` },
];
