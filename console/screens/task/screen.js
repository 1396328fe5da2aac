// One task: how it stands and why, its attempts, what it was given and what came of it, and its log.

import { api, segment } from "../../data/api.js";
import { useFollowed } from "../../data/follow.js";
import { count } from "../../data/numbers.js";
import { canRetry, cancel, hasEnded, isStep, retry } from "../../data/tasks.js";
import { may } from "../../data/session.js";
import { Status } from "../../parts/badge.js";
import { Button } from "../../parts/button.js";
import { cli, CopyAs, CopyText } from "../../parts/copy.js";
import { ask } from "../../parts/dialog.js";
import { Facts, Head, Panel } from "../../parts/facts.js";
import { Json } from "../../parts/json.js";
import { EventLink, HandlerLink, KeyLink, Link } from "../../parts/link.js";
import { Shown } from "../../parts/states.js";
import { Ago, Duration, Full } from "../../parts/time.js";
import { attempt } from "../../parts/toast.js";
import { html, useRef } from "../../parts/ui.js";
import { useShortcuts } from "../../shell/keys.js";
import { exists, places } from "../../shell/router.js";
import { Attempts } from "./attempts.js";
import { Log } from "./log.js";
import { Payload } from "./payload.js";
import { useWhy, Why } from "./why.js";

/** @typedef {import("../../data/bodies.js").TaskDetail} TaskDetail */

/** @param {{params: Record<string, string>}} props */
export default function Task({ params }) {
  const { id } = params;
  const ended = useRef(false);
  const detail = useFollowed({
    read: async (signal) => {
      const task = /** @type {TaskDetail} */ (await api.get(`/api/v1/tasks/${segment(id)}`, { signal, exact: true }));
      ended.current = hasEnded(task);
      return task;
    },
    filter: { tasks: true },
    calm: 200,
    apply: (data, { tasks }) => (tasks.some((change) => change.id === id) ? null : data),
    // Nodes do not tell of each other's tasks.
    get every() {
      return ended.current ? 15_000 : 4000;
    },
  }, [id]);
  return html`<${Shown} of=${detail} what="The task could not be loaded">
    ${(/** @type {TaskDetail} */ task) => html`<${Detail} key=${task.id} task=${task} onChange=${detail.reload} />`}
  <//>`;
}

/** @param {{task: TaskDetail, onChange: () => void}} props */
function Detail({ task, onChange }) {
  const why = useWhy(task.id);
  // One that failed has gates only if it holds its lane.
  const halts = task.state === "error" && (why.data?.gates.length ?? 0) > 0;
  const over = hasEnded(task);
  const changed = () => {
    onChange();
    why.reload();
  };
  const doRetry = () => attempt(() => retry(task.id), "Queued again").then(changed);
  const doCancel = async () => {
    const text = task.status === "RUNNING" ? "The running attempt is stopped." : halts ? "The task is given up, and its lane continues." : "The task will not run.";
    if (await ask({ title: "Cancel this task", text, action: "Cancel task", danger: true })) await attempt(() => cancel(task.id), "Task cancelled").then(changed);
  };
  const again = canRetry(task);
  const end = !over || task.state === "missing" || halts;
  useShortcuts(may("operator") ? {
    r: { what: "Run again", run: doRetry, when: () => again },
    c: { what: "Cancel", run: doCancel, when: () => end },
  } : {});
  const path = `/api/v1/tasks/${segment(task.id)}`;
  return html`<div class="task stack">
    <${Head} title=${html`${task.handler} <span class="task-of">${task.collection}</span>`} sub=${html`
      <${Status} status=${task.status} state=${task.state} attempt=${task.attempt} />
      <span>created <${Ago} at=${task.created_at} /></span>
      ${task.started_at && task.status !== "SCHEDULED" && html`<span>${over ? "took" : "running for"} <${Duration} from=${task.started_at} to=${task.finished_at} /></span>`}`}>
      ${again && html`<${Button} icon="retry" kind="primary" role="operator" onClick=${doRetry}>Run again<//>`}
      ${end && html`<${Button} icon="stop" kind="danger" role="operator" onClick=${doCancel}>Cancel<//>`}
      <${CopyAs} call=${{ path }} cli=${cli("tasks", "show", task.id)} />
    <//>
    ${task.error && html`<section class="task-error" aria-label="Error"><h2>${over && task.status === "FAILED" ? "Error" : "Last error"}</h2><pre>${task.error}</pre></section>`}
    <div class="columns">
      <div class="stack">
        <${Why} why=${why} />
        <${WayOut} task=${task} />
        <${Attempts} task=${task} />
        <${Log} id=${task.id} over=${over} turn=${task.attempt} />
      </div>
      <div class="stack">
        <${Panel} title="Task"><${Facts} of=${facts(task)} /><//>
        <${Payload} task=${task} />
        ${task.result !== null && task.result !== undefined && html`<${Panel} title="Result"><${Json} value=${task.result} label="Result" /><//>`}
      </div>
    </div>
  </div>`;
}

/** What to do where the task itself cannot be run again. @param {{task: TaskDetail}} props */
function WayOut({ task }) {
  const order = places.order(task.key ?? "", task.tenant);
  if (isStep(task) && task.state === "error") {
    return html`<p class="notice">The step of an order cannot be run again from here. The order moves on, or can be resumed.
      ${exists(order) && html`<${Link} to=${order}>Open the order<//>`}</p>`;
  }
  if (task.state !== "missing") return null;
  return html`<p class="notice warn">Its handler is no longer defined. Define ${task.handler} again and adopt its missing tasks, or cancel this one.
    <code>${cli("handlers", "adopt", task.handler)}</code></p>`;
}

/** @param {TaskDetail} task
 * @returns {[string, import("../../parts/ui.js").Children][]} */
function facts(task) {
  return [
    ["Id", html`<span class="mono">${task.id}</span> <${CopyText} text=${task.id} what="task id" />`],
    ["Handler", html`<${HandlerLink} name=${task.handler} />`],
    [task.event_id === null ? (isStep(task) ? "Node" : "Collection") : "Type", task.collection],
    [isStep(task) ? "Order" : "Object", task.key !== null && html`<${KeyLink} of=${task.key} tenant=${task.tenant} />`],
    ["Event", task.event_id !== null && html`<${EventLink} id=${task.event_id} />`],
    ["Tenant", task.tenant],
    ["Priority", task.priority],
    ["Retries", task.retries > 0 && `${count(task.retries)} used`],
    ["Planned for", task.planned_at && html`<${Full} at=${task.planned_at} />`],
    ["Created", html`<${Full} at=${task.created_at} />`],
    ["Started", task.started_at && html`<${Full} at=${task.started_at} />`],
    ["Ended", task.finished_at && html`<${Full} at=${task.finished_at} />`],
    ["Not before", task.delay_until && html`<${Full} at=${task.delay_until} />`],
    ["Lease until", task.running?.lease_until && html`<${Full} at=${task.running.lease_until} />`],
    ["Related", html`<span class="task-beside">${task.event_id !== null && html`<${Link} to=${places.tasks({ event: task.event_id })}>tasks of the same event<//>`}
      ${task.key !== null && html`<${Link} to=${places.tasks({ key: task.key, tenant: task.tenant })}>tasks of the same object<//>`}
      <${Link} to=${places.tasks({ handler: task.handler })}>tasks of the same handler<//></span>`],
  ];
}
