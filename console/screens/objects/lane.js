// One lane: its head, why it waits, and the actions on it.

import { pluralize } from "../../data/numbers.js";
import { cancelTask, retryTask } from "../../data/tasks.js";
import { Badge, TaskStatusBadge } from "../../parts/badge.js";
import { Button } from "../../parts/button.js";
import { promptUser } from "../../parts/prompt.js";
import { HandlerLink, Link, TaskLink } from "../../parts/link.js";
import { RelativeTime } from "../../parts/time.js";
import { runWithToast } from "../../parts/actions.js";
import { ServerText } from "../../parts/server-text.js";
import { classNames, html } from "../../parts/ui.js";
import { screenPaths } from "../../shell/router.js";

/** @typedef {import("./lanes.js").Lane} Lane */
/** @typedef {import("../../data/api-types.js").Task} Task */

/** @param {{lane: Lane, objectKey: string, tenant: string, onChange: () => void}} props */
export function LaneCard({ lane, objectKey, tenant, onChange }) {
  const { handler, head, why, halted, ordered } = lane;
  return html`<li class=${classNames("lane", halted && "halted")}>
    <header>
      <h3><${HandlerLink} name=${handler} /></h3>
      ${laneStateBadge(lane)}
      <span class="lane-waiting">${ordered
        ? html`<${Link} to=${screenPaths.tasks({ key: objectKey, tenant, handler, status: "SCHEDULED" })}>${waitingText(lane)}<//>`
        : html`<span class="faint">unordered: its tasks run in parallel</span>`}</span>
    </header>
    <p class="lane-head"><span class="faint">${ordered ? "First task" : "Oldest"}</span> <${TaskLink} id=${head.id} short />
      <${TaskStatusBadge} status=${head.status} state=${head.state} attempt=${head.attempt} />
      <span class="faint">created <${RelativeTime} at=${head.created_at} /></span></p>
    ${head.error && html`<p class="lane-error bad-text">${head.error}</p>`}
    ${why && html`<p class="lane-why"><${ServerText} text=${why.summary} taskIds=${why.gates.flatMap((gate) => gate.tasks)} isSentence /></p>`}
    <${LaneActions} head=${head} halted=${halted} onChange=${onChange} />
  </li>`;
}

/** @param {Lane} lane */
function waitingText({ waiting, more }) {
  if (waiting === 0) return "no tasks behind it";
  return `${more ? "more than " : ""}${pluralize(waiting, "task")} behind it`;
}

/** @param {Lane} lane */
function laneStateBadge({ halted, head, why }) {
  if (halted) return html`<${Badge} tone="bad">Halted<//>`;
  if (head.status === "RUNNING") return html`<${Badge} tone="busy">Running<//>`;
  const closedGate = why?.gates.find((gate) => !gate.open);
  return html`<${Badge} tone=${closedGate?.gate === "rule" || closedGate?.gate === "target" ? "warn" : "idle"}>Waiting<//>`;
}

/** @param {{head: Task, halted: boolean, onChange: () => void}} props */
function LaneActions({ head, halted, onChange }) {
  const doCancel = async () => {
    const text = halted ? "The task is given up, and the next task of the lane runs." : head.status === "RUNNING" ? "The running attempt is stopped, and the next task of the lane runs." : "The task will not run, and the next task of the lane takes its place.";
    if (await promptUser({ title: "Cancel the first task of the lane", text, actionLabel: "Cancel task", danger: true })) await runWithToast(() => cancelTask(head.id), "Task cancelled").then(onChange);
  };
  return html`<div class="actions lane-actions">
    ${halted && html`<${Button} small kind="primary" icon="retry" role="operator" title="It stays first in its lane"
      onClick=${() => runWithToast(() => retryTask(head.id), "Task is run again").then(onChange)}>Run again<//>`}
    <${Button} small kind=${halted ? "danger" : "plain"} icon="stop" role="operator" onClick=${doCancel}>${halted ? "Give up" : "Cancel"}<//>
    <${Link} to=${screenPaths.task(head.id)}>Task details<//>
  </div>`;
}
