// Actions on the selected tasks, or on all matching tasks.

import { redriveScopeFromFilter } from "../../data/redrives.js";
import { formatCount, pluralize } from "../../data/numbers.js";
import { canCancelTask, canRetryTask, cancelTask, collectTaskIds, retryTask } from "../../data/tasks.js";
import { hasRole } from "../../data/session.js";
import { Button } from "../../parts/button.js";
import { promptUser } from "../../parts/prompt.js";
import { runBulkJob } from "../../parts/bulk.js";
import { runWithUndo } from "../../parts/actions.js";
import { showError } from "../../parts/toast.js";
import { html } from "../../parts/ui.js";
import { useShortcuts } from "../../shell/shortcuts.js";

/** @typedef {import("../../data/api-types.js").Task} Task */
/** @typedef {import("../../data/tasks.js").TaskFilter} TaskFilter */

/** Maximum tasks that are cancelled one by one. */
const MAX_TASKS_TO_CANCEL = 10_000;

/** @typedef {{selected: Set<string>, allMatching: boolean}} TaskSelection */

/** Runs an action on tasks after a delay in which it can be undone.
 * @param {"retry" | "cancel"} action @param {string[]} ids @param {() => void} onStart */
function runActionOnTasks(action, ids, onStart) {
  const countText = pluralize(ids.length, "task");
  const [willText, title, run] = action === "retry" ? ["will be run again", "Running again", retryTask] : ["will be cancelled", "Cancelling", cancelTask];
  runWithUndo({ text: `${countText} ${willText}`, run: () => {
    onStart();
    return runBulkJob({ title: `${title} ${countText}`, ids, run });
  } });
}

/** Cancels all matching tasks. Their ids are collected first, to show the number. Without a status, only unfinished
 * tasks are cancelled.
 * @param {TaskFilter} filter @param {() => void} onStart */
async function cancelAllMatchingTasks(filter, onStart) {
  try {
    const statuses = filter.status ? [filter.status] : ["SCHEDULED", "RUNNING", "missing"];
    const results = await Promise.all(statuses.map((status) => collectTaskIds({ ...filter, status }, MAX_TASKS_TO_CANCEL, canCancelTask)));
    const ids = results.flatMap((result) => result.ids).slice(0, MAX_TASKS_TO_CANCEL);
    const hasMore = results.some((result) => result.hasMore);
    const includesFailed = filter.status === "FAILED" || filter.status === "error";
    if (ids.length === 0) {
      await promptUser({ title: "Nothing to cancel", text: "All matching tasks have ended.", actionLabel: "OK" });
      return;
    }
    const confirmed = await promptUser({
      title: "Cancel all matching tasks",
      text: html`<p><b>${hasMore ? `The newest ${formatCount(ids.length)} tasks` : pluralize(ids.length, "task")}</b> will be cancelled, one by one: waiting tasks
        will not run, and running attempts are stopped. Keep this page open until it is done.</p>
        ${includesFailed && html`<p>Failed tasks can be cancelled only if they halt their lane.</p>`}
        ${hasMore && html`<p>There are more matching tasks. Cancel them when these are done.</p>`}`,
      actionLabel: `Cancel ${formatCount(ids.length)}`, danger: true,
    });
    if (confirmed) runActionOnTasks("cancel", ids, onStart);
  } catch (error) {
    showError(error, "The tasks could not be counted");
  }
}

/** Runs all matching tasks again. A redrive cannot be limited to one event: those tasks are few, and are collected.
 * @param {TaskFilter} filter @param {() => void} openRedrive @param {() => void} onStart */
async function retryAllMatchingTasks(filter, openRedrive, onStart) {
  if (redriveScopeFromFilter(filter)) return openRedrive();
  try {
    const { ids } = await collectTaskIds(filter, MAX_TASKS_TO_CANCEL, canRetryTask);
    if (ids.length === 0) await promptUser({ title: "Nothing to run again", text: "No matching task has failed or was cancelled.", actionLabel: "OK" });
    else runActionOnTasks("retry", ids, onStart);
  } catch (error) {
    showError(error, "The tasks could not be counted");
  }
  return undefined;
}

/** @param {{rows: Task[], filter: TaskFilter, selection: TaskSelection, hasMore: boolean, onChange: (selection: TaskSelection) => void,
 *   onRedrive: () => void}} props `hasMore`: not all matching tasks are loaded */
export function SelectionBar({ rows, filter, selection, hasMore, onChange, onRedrive }) {
  const { selected, allMatching } = selection;
  const selectedTasks = allMatching || selected.size === 0 ? [] : rows.filter((task) => selected.has(task.id));
  const retryIds = selectedTasks.filter(canRetryTask).map((task) => task.id);
  const cancelIds = selectedTasks.filter(canCancelTask).map((task) => task.id);
  const clear = () => onChange({ selected: new Set(), allMatching: false });
  const doRetry = () => {
    if (allMatching) retryAllMatchingTasks(filter, onRedrive, clear);
    else if (retryIds.length) runActionOnTasks("retry", retryIds, clear);
  };
  const doCancel = () => {
    if (allMatching) cancelAllMatchingTasks(filter, clear);
    else if (cancelIds.length) runActionOnTasks("cancel", cancelIds, clear);
  };
  const hasSelection = allMatching || selectedTasks.length > 0;
  const isOperator = hasRole("operator");
  useShortcuts({
    ...(isOperator && { r: { title: "Run the selected tasks again", run: doRetry, when: () => hasSelection } }),
    ...(isOperator && { c: { title: "Cancel the selected tasks", run: doCancel, when: () => hasSelection } }),
    a: { title: "Select all matching tasks", run: () => onChange({ selected: new Set(), allMatching: true }), when: () => rows.length > 0 },
    Escape: { title: "Clear the selection", run: clear, when: () => hasSelection },
  });
  if (!hasSelection) return null;
  return html`<div class="selection-bar" role="group" aria-label="Selected tasks">
    <b>${allMatching ? `All matching tasks are selected${hasMore ? "" : `: ${formatCount(rows.length)}`}` : `${pluralize(selectedTasks.length, "task")} selected`}</b>
    ${!allMatching && html`<${Button} small kind="quiet" onClick=${() => onChange({ selected: new Set(), allMatching: true })}>Select all matching<//>`}
    <${Button} small icon="retry" role="operator" disabled=${!allMatching && retryIds.length === 0} onClick=${doRetry}
      title="Failed and cancelled tasks (r)">${allMatching ? "Run again…" : `Run ${retryIds.length} again`}<//>
    <${Button} small icon="stop" role="operator" disabled=${!allMatching && cancelIds.length === 0} onClick=${doCancel}
      title="Tasks that have not ended, or halt their lane (c)">${allMatching ? "Cancel…" : `Cancel ${cancelIds.length}`}<//>
    <${Button} small kind="quiet" icon="close" onClick=${clear}>Clear selection<//>
  </div>`;
}
