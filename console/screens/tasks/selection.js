// What is done to the tasks that were chosen: those whose boxes are ticked, or all that match.

import { redriveScope } from "../../data/redrives.js";
import { formatCount, pluralize } from "../../data/numbers.js";
import { canCancel, canRetry, cancelTask, collectTaskIds, retryTask } from "../../data/tasks.js";
import { hasRole } from "../../data/session.js";
import { Button } from "../../parts/button.js";
import { promptUser } from "../../parts/prompt.js";
import { runBulk } from "../../parts/bulk.js";
import { runWithUndo, showError } from "../../parts/toast.js";
import { html } from "../../parts/ui.js";
import { useShortcuts } from "../../shell/keys.js";

/** @typedef {import("../../data/api-types.js").Task} Task */
/** @typedef {import("../../data/tasks.js").TaskFilter} TaskFilter */

/** How many are ended one by one at most. */
const MAX_TASKS = 10_000;

/** @typedef {{chosen: Set<string>, all: boolean}} TaskSelection */

/** Does something to tasks after a moment in which it can be undone.
 * @param {"retry" | "cancel"} deed @param {string[]} ids @param {() => void} begun */
function runOnTasks(deed, ids, begun) {
  const what = pluralize(ids.length, "task");
  const [will, title, run] = deed === "retry" ? ["will be run again", "Running again", retryTask] : ["will be cancelled", "Cancelling", cancelTask];
  runWithUndo({ text: `${what} ${will}`, run: () => {
    begun();
    return runBulk({ title: `${title} ${what}`, ids, run });
  } });
}

/** Ends all that match: they are gathered first, so that it can be said how many they are. Without a status those are
 * meant that have not ended.
 * @param {TaskFilter} wanted @param {() => void} begun */
async function cancelAllMatching(wanted, begun) {
  try {
    const statuses = wanted.status ? [wanted.status] : ["SCHEDULED", "RUNNING", "missing"];
    const found = await Promise.all(statuses.map((status) => collectTaskIds({ ...wanted, status }, MAX_TASKS, canCancel)));
    const ids = found.flatMap((part) => part.ids).slice(0, MAX_TASKS);
    const more = found.some((part) => part.more);
    const failed = wanted.status === "FAILED" || wanted.status === "error";
    if (ids.length === 0) {
      await promptUser({ title: "Nothing to cancel", text: "All matching tasks have ended.", action: "OK" });
      return;
    }
    const sure = await promptUser({
      title: "Cancel all matching tasks",
      text: html`<p><b>${more ? `The newest ${formatCount(ids.length)} tasks` : pluralize(ids.length, "task")}</b> will be cancelled, one by one: waiting tasks
        will not run, and running attempts are stopped. Keep this page open until it is done.</p>
        ${failed && html`<p>Of the failed tasks, only those that halt their lane can be cancelled.</p>`}
        ${more && html`<p>There are more matching tasks. Cancel them when these are done.</p>`}`,
      action: `Cancel ${formatCount(ids.length)}`, danger: true,
    });
    if (sure) runOnTasks("cancel", ids, begun);
  } catch (error) {
    showError(error, "The tasks could not be counted");
  }
}

/** Runs all that match again. A redrive cannot mean a single event: its tasks are few, and are gathered.
 * @param {TaskFilter} wanted @param {() => void} redrive @param {() => void} begun */
async function retryAllMatching(wanted, redrive, begun) {
  if (redriveScope(wanted)) return redrive();
  try {
    const { ids } = await collectTaskIds(wanted, MAX_TASKS, canRetry);
    if (ids.length === 0) await promptUser({ title: "Nothing to run again", text: "No matching task has failed or was cancelled.", action: "OK" });
    else runOnTasks("retry", ids, begun);
  } catch (error) {
    showError(error, "The tasks could not be counted");
  }
  return undefined;
}

/** @param {{rows: Task[], wanted: TaskFilter, selection: TaskSelection, more: boolean, onChange: (selection: TaskSelection) => void,
 *   onRedrive: () => void}} props `more`: not all that match are among the rows */
export function SelectionBar({ rows, wanted, selection, more, onChange, onRedrive }) {
  const { chosen, all } = selection;
  const picked = all || chosen.size === 0 ? [] : rows.filter((task) => chosen.has(task.id));
  const again = picked.filter(canRetry).map((task) => task.id);
  const end = picked.filter(canCancel).map((task) => task.id);
  const none = () => onChange({ chosen: new Set(), all: false });
  const doRetry = () => {
    if (all) retryAllMatching(wanted, onRedrive, none);
    else if (again.length) runOnTasks("retry", again, none);
  };
  const doCancel = () => {
    if (all) cancelAllMatching(wanted, none);
    else if (end.length) runOnTasks("cancel", end, none);
  };
  const some = all || picked.length > 0;
  const operator = hasRole("operator");
  useShortcuts({
    ...(operator && { r: { what: "Run the selected tasks again", run: doRetry, when: () => some } }),
    ...(operator && { c: { what: "Cancel the selected tasks", run: doCancel, when: () => some } }),
    a: { what: "Select all matching tasks", run: () => onChange({ chosen: new Set(), all: true }), when: () => rows.length > 0 },
    Escape: { what: "Clear the selection", run: none, when: () => some },
  });
  if (!some) return null;
  return html`<div class="chosen-bar" role="group" aria-label="Selected tasks">
    <b>${all ? `All matching tasks are selected${more ? "" : `: ${formatCount(rows.length)}`}` : `${pluralize(picked.length, "task")} selected`}</b>
    ${!all && html`<${Button} small kind="quiet" onClick=${() => onChange({ chosen: new Set(), all: true })}>Select all matching<//>`}
    <${Button} small icon="retry" role="operator" disabled=${!all && again.length === 0} onClick=${doRetry}
      title="Failed and cancelled tasks (r)">${all ? "Run again…" : `Run ${again.length} again`}<//>
    <${Button} small icon="stop" role="operator" disabled=${!all && end.length === 0} onClick=${doCancel}
      title="Tasks that have not ended, or halt their lane (c)">${all ? "Cancel…" : `Cancel ${end.length}`}<//>
    <${Button} small kind="quiet" icon="close" onClick=${none}>Clear selection<//>
  </div>`;
}
