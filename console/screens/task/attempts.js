// The attempts of a task: on a timeline, with the waits between them, and one by one.

import { millis } from "../../data/time.js";
import { counted } from "../../data/numbers.js";
import { Badge } from "../../parts/badge.js";
import { Panel } from "../../parts/facts.js";
import { Table } from "../../parts/table.js";
import { Timeline } from "../../parts/timeline.js";
import { Clock, Duration } from "../../parts/time.js";
import { html } from "../../parts/ui.js";

/** @typedef {import("../../data/bodies.js").TaskDetail} TaskDetail */
/** @typedef {import("../../parts/badge.js").Tone} Tone */
/** @typedef {{number: number, started_at: string, ended_at: string, end: string, error: string | null}} Row */

/** Attempts on the timeline: the last ones. */
const MOST_DRAWN = 12;

/** How attempts end. @type {Record<string, [Tone, string]>} */
const ENDS = {
  succeeded: ["good", "Succeeded"], failed: ["bad", "Failed"], crashed: ["bad", "Crashed"], canceled: ["off", "Cancelled"],
  snoozed: ["idle", "Snoozed"], released: ["idle", "Released"], running: ["busy", "Running"],
};

/** @param {{task: TaskDetail}} props */
export function Attempts({ task }) {
  const rows = attemptsOf(task);
  return html`<${Panel} title="Attempts" flush aside=${counted(task.attempt, "attempt")}>
    <div class="attempts-line"><${Timeline} label="Attempts and waiting times" names=${96} rows=${lines(task, rows)} /></div>
    ${rows.length > 0 && html`<${Table} label="Attempts" keys=${false} columns=${COLUMNS} rows=${[...rows].reverse()} id=${(/** @type {Row} */ row) => String(row.number)} />`}
  <//>`;
}

/** @param {TaskDetail} task
 * @returns {Row[]} */
function attemptsOf({ attempts, running }) {
  const now = running ? [{ number: running.number, started_at: running.started_at, ended_at: "", end: "running", error: null }] : [];
  return [...attempts, ...now];
}

/** @param {TaskDetail} task @param {Row[]} rows
 * @returns {import("../../parts/timeline.js").Row[]} */
function lines(task, rows) {
  const drawn = rows.slice(-MOST_DRAWN);
  let before = millis(rows.length > drawn.length ? rows[rows.length - drawn.length - 1].ended_at : task.created_at) ?? 0;
  /** @type {import("../../parts/timeline.js").Row[]} */
  const list = drawn.map((row) => {
    const from = millis(row.started_at) ?? before;
    const to = millis(row.ended_at);
    const [tone, word] = ENDS[row.end] ?? ["idle", row.end];
    /** @type {import("../../parts/timeline.js").Bar[]} */
    const bars = [{ from, to, tone, title: `Attempt ${row.number}, ${word.toLowerCase()}` }];
    if (from > before) bars.unshift({ from: before, to: from, tone: "idle", title: "Waited" });
    before = to ?? from;
    return { name: `Attempt ${row.number}`, bars };
  });
  if (task.status === "SCHEDULED") list.push({ name: "Waiting", bars: [{ from: before, to: null, tone: "idle", title: "Waiting" }] });
  return list;
}

/** @type {import("../../parts/table.js").Column<Row>[]} */
const COLUMNS = [
  { name: "number", title: "No.", width: 52, right: true, narrow: true, cell: (row) => row.number },
  { name: "end", title: "Result", width: 112, narrow: true, cell: ({ end }) => html`<${Badge} tone=${(ENDS[end] ?? ["idle"])[0]}>${(ENDS[end] ?? ["", end])[1]}<//>` },
  { name: "started", title: "Started", width: 170, cell: (row) => html`<${Clock} at=${row.started_at} />` },
  { name: "took", title: "Duration", width: 104, right: true, narrow: true, cell: (row) => html`<${Duration} from=${row.started_at} to=${row.ended_at} />` },
  { name: "error", title: "Error", grow: 60, cell: (row) => html`<span class="bad-text" title=${row.error}>${row.error}</span>` },
];
