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
        : html`<span class="faint">no order: its tasks run side by side</span>`}</span>
    </header>
    <p class="lane-head"><span class="faint">${ordered ? "Head" : "Oldest"}</span> <${TaskLink} id=${head.id} short />
      <${Status} status=${head.status} state=${head.state} attempt=${head.attempt} />
      <span class="faint">made <${Ago} at=${head.created_at} /></span></p>
    ${head.error && html`<p class="lane-error bad-text">${head.error}</p>`}
    ${why && html`<p class="lane-why"><${Told} text=${why.summary} tasks=${why.gates.flatMap((gate) => gate.tasks)} whole /></p>`}
    <${Ways} head=${head} halted=${halted} onChange=${onChange} />
  </li>`;
}

/** @param {Lane} lane */
function behind({ waiting, more }) {
  if (waiting === 0) return "none waits behind it";
  return `${more ? "more than " : ""}${counted(waiting, "task")} behind it`;
}

/** @param {Lane} lane */
function state({ halted, head, why }) {
  if (halted) return html`<${Badge} tone="bad">Stands still<//>`;
  if (head.status === "RUNNING") return html`<${Badge} tone="busy">Runs<//>`;
  const shut = why?.gates.find((gate) => !gate.open);
  return html`<${Badge} tone=${shut?.gate === "rule" || shut?.gate === "target" ? "warn" : "idle"}>Waits<//>`;
}

/** @param {{head: Task, halted: boolean, onChange: () => void}} props */
function Ways({ head, halted, onChange }) {
  const doCancel = async () => {
    const text = halted ? "It is given up, and the next of its lane runs." : head.status === "RUNNING" ? "Its attempt is cut short, and the next of its lane runs." : "It will not run, and the next of its lane comes to its place.";
    if (await ask({ title: "Cancel the head", text, action: "Cancel it", danger: true })) await attempt(() => cancel(head.id), "It is cancelled").then(onChange);
  };
  return html`<div class="actions lane-ways">
    ${halted && html`<${Button} small kind="primary" icon="retry" role="operator" title="It keeps its place at the head"
      onClick=${() => attempt(() => retry(head.id), "It is run again, at its place").then(onChange)}>Run it again<//>`}
    <${Button} small kind=${halted ? "danger" : "plain"} icon="stop" role="operator" onClick=${doCancel}>${halted ? "Give it up" : "Cancel it"}<//>
    <${Link} to=${places.task(head.id)}>Why, log and attempts<//>
  </div>`;
}
