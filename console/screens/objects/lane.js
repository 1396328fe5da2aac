// One lane: its head, why it does not go on, and the ways out.

import { counted } from "../../data/numbers.js";
import { cancel, retry } from "../../data/tasks.js";
import { Badge, Status } from "../../parts/badge.js";
import { Button } from "../../parts/button.js";
import { ask } from "../../parts/dialog.js";
import { HandlerLink, Link, TaskLink } from "../../parts/link.js";
import { Ago } from "../../parts/time.js";
import { attempt } from "../../parts/toast.js";
import { Told } from "../../parts/told.js";
import { classes, html } from "../../parts/ui.js";
import { places } from "../../shell/router.js";

/** @typedef {import("./lanes.js").Lane} Lane */
/** @typedef {import("../../data/bodies.js").Task} Task */

/** @param {{lane: Lane, objectKey: string, tenant: string, onChange: () => void}} props */
export function LaneCard({ lane, objectKey, tenant, onChange }) {
  const { handler, head, why, halted, ordered } = lane;
  return html`<li class=${classes("lane", halted && "halted")}>
    <header>
      <h3><${HandlerLink} name=${handler} /></h3>
      ${state(lane)}
      <span class="lane-behind">${ordered
        ? html`<${Link} to=${places.tasks({ key: objectKey, tenant, handler, status: "SCHEDULED" })}>${behind(lane)}<//>`
        : html`<span class="faint">unordered: its tasks run in parallel</span>`}</span>
    </header>
    <p class="lane-head"><span class="faint">${ordered ? "First task" : "Oldest"}</span> <${TaskLink} id=${head.id} short />
      <${Status} status=${head.status} state=${head.state} attempt=${head.attempt} />
      <span class="faint">made <${Ago} at=${head.created_at} /></span></p>
    ${head.error && html`<p class="lane-error bad-text">${head.error}</p>`}
    ${why && html`<p class="lane-why"><${Told} text=${why.summary} tasks=${why.gates.flatMap((gate) => gate.tasks)} whole /></p>`}
    <${Ways} head=${head} halted=${halted} onChange=${onChange} />
  </li>`;
}

/** @param {Lane} lane */
function behind({ waiting, more }) {
  if (waiting === 0) return "no tasks behind it";
  return `${more ? "more than " : ""}${counted(waiting, "task")} behind it`;
}

/** @param {Lane} lane */
function state({ halted, head, why }) {
  if (halted) return html`<${Badge} tone="bad">Halted<//>`;
  if (head.status === "RUNNING") return html`<${Badge} tone="busy">Running<//>`;
  const shut = why?.gates.find((gate) => !gate.open);
  return html`<${Badge} tone=${shut?.gate === "rule" || shut?.gate === "target" ? "warn" : "idle"}>Waiting<//>`;
}

/** @param {{head: Task, halted: boolean, onChange: () => void}} props */
function Ways({ head, halted, onChange }) {
  const doCancel = async () => {
    const text = halted ? "The task is given up, and the next task of the lane runs." : head.status === "RUNNING" ? "The running attempt is stopped, and the next task of the lane runs." : "The task will not run, and the next task of the lane takes its place.";
    if (await ask({ title: "Cancel the first task of the lane", text, action: "Cancel task", danger: true })) await attempt(() => cancel(head.id), "Task cancelled").then(onChange);
  };
  return html`<div class="actions lane-ways">
    ${halted && html`<${Button} small kind="primary" icon="retry" role="operator" title="It stays first in its lane"
      onClick=${() => attempt(() => retry(head.id), "Task is run again").then(onChange)}>Run again<//>`}
    <${Button} small kind=${halted ? "danger" : "plain"} icon="stop" role="operator" onClick=${doCancel}>${halted ? "Give up" : "Cancel"}<//>
    <${Link} to=${places.task(head.id)}>Task details<//>
  </div>`;
}
