// One failure group: its error, its tasks, and running them again.

import { formatCount, pluralize } from "../../data/numbers.js";
import { retryTask } from "../../data/tasks.js";
import { Button } from "../../parts/button.js";
import { cliCommand } from "../../parts/copy.js";
import { promptUser } from "../../parts/prompt.js";
import { PropertyList, Panel } from "../../parts/panel.js";
import { HandlerLink, ObjectOrOrderLink, Link, TaskLink } from "../../parts/link.js";
import { runBulkJob } from "../../parts/bulk.js";
import { RelativeTime, DateTime } from "../../parts/time.js";
import { runWithUndo } from "../../parts/actions.js";
import { html } from "../../parts/ui.js";
import { screenPaths } from "../../shell/router.js";

/** @typedef {import("./groups.js").FailureGroup} FailureGroup */
/** @typedef {import("./failures.js").LoadedFailures} LoadedFailures */
/** @typedef {import("../../data/tasks.js").TaskFilter} TaskFilter */
/** @typedef {import("../../data/redrives.js").RedriveScope} RedriveScope */

/** Maximum tasks that are listed, and that are run again one by one. */
const MAX_LISTED_TASKS = 12;
const MAX_TASKS_TO_RETRY = 10_000;

/** @param {{group: FailureGroup, groups: FailureGroup[], data: LoadedFailures, filter: TaskFilter, onRedrive: (scope: RedriveScope) => void, onClose: () => void}} props */
export function FailureGroupDetail({ group, groups, data, filter, onRedrive, onClose }) {
  const { handler, kind, error, failures, newest, oldest, objects, tenants } = group;
  /** @type {RedriveScope} */
  const redriveScope = { status: "FAILED", ...filter, handler };
  // A redrive cannot select by error: it is used if all failures of the handler are in this group.
  const isOnlyError = !data.hasMore && groups.every((other) => other === group || other.handler !== handler || other.kind !== "failed");
  return html`<div class="failures-detail"><${Panel} title=${handler} label="Failure group"
    aside=${html`<${Button} small kind="quiet" icon="close" label="Close" onClick=${onClose} />`}>
    <div class="stack">
      ${kind !== "missing" && html`<pre class="failures-error">${error || "No error message."}</pre>`}
      ${kind === "failed" && html`<div class="actions">
        <${Button} kind="primary" icon="retry" role="operator" onClick=${() => (isOnlyError ? onRedrive(redriveScope) : retryGroup(group))}>Run ${formatCount(failures.length)} again<//>
        ${!isOnlyError && html`<${Button} role="operator" onClick=${() => onRedrive(redriveScope)}>Redrive all of ${handler}…<//>`}
      </div>`}
      ${kind === "step" && html`<p class="notice">These are steps of orders and cannot be run again from here. Their orders have moved on, or can be resumed.</p>`}
      ${kind === "missing" && html`<p class="notice warn">The handler is no longer defined. Define it again and adopt its tasks, or cancel them: <code>${cliCommand("handlers", "adopt", handler)}</code></p>`}
      <${PropertyList} items=${[
        ["Tasks", html`<${Link} to=${screenPaths.tasks({ ...filter, handler, status: kind === "missing" ? "missing" : "FAILED" })}>${pluralize(failures.length, "task")}<//>`],
        ["Handler", html`<${HandlerLink} name=${handler} />`],
        ["Objects", formatCount(objects)],
        ["Tenants", tenants.slice(0, 8).join(", ") + (tenants.length > 8 ? ` and ${tenants.length - 8} more` : "")],
        ["Latest", html`<${DateTime} at=${newest} />`],
        ["First", html`<${DateTime} at=${oldest} />`],
      ]} />
      <ul class="failures-tasks" aria-label="Newest tasks of the group">
        ${failures.slice(0, MAX_LISTED_TASKS).map((failure) => html`<li key=${failure.id}><${TaskLink} id=${failure.id} suffixOnly />
          ${failure.key !== null && html`<${ObjectOrOrderLink} objectKey=${failure.key} tenant=${failure.tenant} />`}<${RelativeTime} at=${failure.at} /></li>`)}
        ${failures.length > MAX_LISTED_TASKS && html`<li class="faint">and ${formatCount(failures.length - MAX_LISTED_TASKS)} more</li>`}
      </ul>
    </div>
  <//></div>`;
}

/** Runs the tasks of the group again, one by one. @param {FailureGroup} group */
async function retryGroup({ handler, failures }) {
  // Oldest first, as in their lanes.
  const ids = failures.slice(0, MAX_TASKS_TO_RETRY).map((failure) => failure.id).reverse();
  const countText = pluralize(ids.length, "task");
  const confirmed = await promptUser({
    title: "Run these tasks again",
    text: html`<p><b>${countText}</b> of ${handler} with this error will be run again, one by one, the oldest first. Keep this page open until it is done.</p>`,
    actionLabel: `Run ${formatCount(ids.length)} again`,
  });
  if (confirmed) runWithUndo({ text: `${countText} of ${handler} will be run again`, run: () => runBulkJob({ title: `Running ${countText} of ${handler} again`, ids, run: retryTask }) });
}
