// One task: status, why it waits, attempts, payload, result and log.

import { api, encodeSegment } from "../../data/api.js";
import { useLiveData } from "../../data/live-data.js";
import { formatCount } from "../../data/numbers.js";
import { canRetryTask, cancelTask, hasTaskEnded, isOrderStepTask, retryTask } from "../../data/tasks.js";
import { hasRole } from "../../data/session.js";
import { TaskStatusBadge } from "../../parts/badge.js";
import { Button } from "../../parts/button.js";
import { cliCommand, CopyAsMenu, CopyButton } from "../../parts/copy.js";
import { promptUser } from "../../parts/prompt.js";
import { PropertyList, ScreenHeader, Panel } from "../../parts/panel.js";
import { JsonView } from "../../parts/json.js";
import { EventLink, HandlerLink, ObjectOrOrderLink, Link } from "../../parts/link.js";
import { LiveView } from "../../parts/states.js";
import { RelativeTime, Duration, DateTime } from "../../parts/time.js";
import { runWithToast } from "../../parts/actions.js";
import { html, useRef } from "../../parts/ui.js";
import { useShortcuts } from "../../shell/shortcuts.js";
import { screenExists, screenPaths } from "../../shell/router.js";
import { AttemptPanel } from "./attempts.js";
import { LogPanel } from "./log.js";
import { TaskPayload } from "./payload.js";
import { useTaskWhy, WhyPanel } from "./why.js";

/** @typedef {import("../../data/api-types.js").TaskDetail} TaskDetail */

/** @param {{params: Record<string, string>}} props */
export default function TaskScreen({ params }) {
  const { id } = params;
  const ended = useRef(false);
  const detail = useLiveData({
    read: async (signal) => {
      const task = /** @type {TaskDetail} */ (await api.get(`/api/v1/tasks/${encodeSegment(id)}`, { signal, exactNumbers: true }));
      ended.current = hasTaskEnded(task);
      return task;
    },
    filter: { tasks: true },
    minInterval: 200,
    apply: (data, { tasks }) => (tasks.some((change) => change.id === id) ? null : data),
    // A node does not stream task changes of its peers.
    get pollInterval() {
      return ended.current ? 15_000 : 4000;
    },
  }, [id]);
  return html`<${LiveView} live=${detail} errorTitle="The task could not be loaded">
    ${(/** @type {TaskDetail} */ task) => html`<${TaskDetail} key=${task.id} task=${task} onChange=${detail.reload} />`}
  <//>`;
}

/** @param {{task: TaskDetail, onChange: () => void}} props */
function TaskDetail({ task, onChange }) {
  const why = useTaskWhy(task.id);
  // A failed task has gates only if it halts its lane.
  const haltsLane = task.state === "error" && (why.data?.gates.length ?? 0) > 0;
  const isEnded = hasTaskEnded(task);
  const reloadAll = () => {
    onChange();
    why.reload();
  };
  const doRetry = () => runWithToast(() => retryTask(task.id), "Queued again").then(reloadAll);
  const doCancel = async () => {
    const text = task.status === "RUNNING" ? "The running attempt is stopped." : haltsLane ? "The task is given up, and its lane continues." : "The task will not run.";
    if (await promptUser({ title: "Cancel this task", text, actionLabel: "Cancel task", danger: true })) await runWithToast(() => cancelTask(task.id), "Task cancelled").then(reloadAll);
  };
  const mayRetry = canRetryTask(task);
  const mayCancel = !isEnded || task.state === "missing" || haltsLane;
  useShortcuts(hasRole("operator") ? {
    r: { title: "Run again", run: doRetry, when: () => mayRetry },
    c: { title: "Cancel", run: doCancel, when: () => mayCancel },
  } : {});
  const path = `/api/v1/tasks/${encodeSegment(task.id)}`;
  return html`<div class="task stack">
    <${ScreenHeader} title=${html`${task.handler} <span class="task-type">${task.collection}</span>`} subtitle=${html`
      <${TaskStatusBadge} status=${task.status} state=${task.state} attempt=${task.attempt} />
      <span>created <${RelativeTime} at=${task.created_at} /></span>
      ${task.started_at && task.status !== "SCHEDULED" && html`<span>${isEnded ? "took" : "running for"} <${Duration} from=${task.started_at} to=${task.finished_at} /></span>`}`}>
      ${mayRetry && html`<${Button} icon="retry" kind="primary" role="operator" onClick=${doRetry}>Run again<//>`}
      ${mayCancel && html`<${Button} icon="stop" kind="danger" role="operator" onClick=${doCancel}>Cancel<//>`}
      <${CopyAsMenu} call=${{ path }} cli=${cliCommand("tasks", "show", task.id)} />
    <//>
    ${task.error && html`<section class="task-error" aria-label="Error"><h2>${isEnded && task.status === "FAILED" ? "Error" : "Last error"}</h2><pre>${task.error}</pre></section>`}
    <div class="columns">
      <div class="stack">
        <${WhyPanel} why=${why} />
        <${NextStepNotice} task=${task} />
        <${AttemptPanel} task=${task} />
        <${LogPanel} id=${task.id} isEnded=${isEnded} attempt=${task.attempt} />
      </div>
      <div class="stack">
        <${Panel} title="Task"><${PropertyList} items=${taskProperties(task)} /><//>
        <${TaskPayload} task=${task} />
        ${task.result !== null && task.result !== undefined && html`<${Panel} title="Result"><${JsonView} value=${task.result} label="Result" /><//>`}
      </div>
    </div>
  </div>`;
}

/** Says how to proceed if the task cannot be run again. @param {{task: TaskDetail}} props */
function NextStepNotice({ task }) {
  const orderPath = screenPaths.order(task.key ?? "", task.tenant);
  if (isOrderStepTask(task) && task.state === "error") {
    return html`<p class="notice">The step of an order cannot be run again from here. Its order has moved on, or can be resumed.
      ${screenExists(orderPath) && html`<${Link} to=${orderPath}>Open the order<//>`}</p>`;
  }
  if (task.state !== "missing") return null;
  return html`<p class="notice warn">Its handler is no longer defined. Define ${task.handler} again and adopt its missing tasks, or cancel this one.
    <code>${cliCommand("handlers", "adopt", task.handler)}</code></p>`;
}

/** @param {TaskDetail} task
 * @returns {[string, import("../../parts/ui.js").Children][]} */
function taskProperties(task) {
  return [
    ["Id", html`<span class="mono">${task.id}</span> <${CopyButton} text=${task.id} label="task id" />`],
    ["Handler", html`<${HandlerLink} name=${task.handler} />`],
    [task.event_id === null ? (isOrderStepTask(task) ? "Node" : "Collection") : "Type", task.collection],
    [isOrderStepTask(task) ? "Order" : "Object", task.key !== null && html`<${ObjectOrOrderLink} objectKey=${task.key} tenant=${task.tenant} />`],
    ["Event", task.event_id !== null && html`<${EventLink} id=${task.event_id} />`],
    ["Tenant", task.tenant],
    ["Priority", task.priority],
    ["Retries", task.retries > 0 && `${formatCount(task.retries)} used`],
    ["Planned for", task.planned_at && html`<${DateTime} at=${task.planned_at} />`],
    ["Created", html`<${DateTime} at=${task.created_at} />`],
    ["Started", task.started_at && html`<${DateTime} at=${task.started_at} />`],
    ["Ended", task.finished_at && html`<${DateTime} at=${task.finished_at} />`],
    ["Not before", task.delay_until && html`<${DateTime} at=${task.delay_until} />`],
    ["Lease until", task.running?.lease_until && html`<${DateTime} at=${task.running.lease_until} />`],
    ["Related", html`<span class="related-tasks">${task.event_id !== null && html`<${Link} to=${screenPaths.tasks({ event: task.event_id })}>tasks of the same event<//>`}
      ${task.key !== null && html`<${Link} to=${screenPaths.tasks({ key: task.key, tenant: task.tenant })}>tasks of the same object<//>`}
      <${Link} to=${screenPaths.tasks({ handler: task.handler })}>tasks of the same handler<//></span>`],
  ];
}
