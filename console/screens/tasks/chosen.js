// What is done to the tasks that were chosen: those whose boxes are ticked, or all that match.

import { scopeOf } from "../../data/redrives.js";
import { count, counted } from "../../data/numbers.js";
import { canCancel, canRetry, cancel, idsOf, retry } from "../../data/tasks.js";
import { may } from "../../data/session.js";
import { Button } from "../../parts/button.js";
import { ask } from "../../parts/dialog.js";
import { many } from "../../parts/many.js";
import { soon, tellError } from "../../parts/toast.js";
import { html } from "../../parts/ui.js";
import { useShortcuts } from "../../shell/keys.js";

/** @typedef {import("../../data/bodies.js").Task} Task */
/** @typedef {import("../../data/tasks.js").Wanted} Wanted */

/** How many are ended one by one at most. */
const MOST = 10_000;

/** @typedef {{chosen: Set<string>, all: boolean}} Selection */

/** Does something to tasks after a moment in which it can be undone.
 * @param {"retry" | "cancel"} deed @param {string[]} ids @param {() => void} begun */
function doTo(deed, ids, begun) {
  const what = counted(ids.length, "task");
  const [will, title, run] = deed === "retry" ? ["will be run again", "Running again", retry] : ["will be cancelled", "Cancelling", cancel];
  soon({ text: `${what} ${will}`, run: () => {
    begun();
    return many({ title: `${title} ${what}`, ids, run });
  } });
}

/** Ends all that match: they are gathered first, so that it can be said how many they are. Without a status those are
 * meant that have not ended.
 * @param {Wanted} wanted @param {() => void} begun */
async function cancelAll(wanted, begun) {
  try {
    const statuses = wanted.status ? [wanted.status] : ["SCHEDULED", "RUNNING", "missing"];
    const found = await Promise.all(statuses.map((status) => idsOf({ ...wanted, status }, MOST, canCancel)));
    const ids = found.flatMap((part) => part.ids).slice(0, MOST);
    const more = found.some((part) => part.more);
    const failed = wanted.status === "FAILED" || wanted.status === "error";
    if (ids.length === 0) {
      await ask({ title: "Nothing to cancel", text: "All matching tasks have ended.", action: "OK" });
      return;
    }
    const sure = await ask({
      title: "Cancel all matching tasks",
      text: html`<p><b>${more ? `The newest ${count(ids.length)} tasks` : counted(ids.length, "task")}</b> will be cancelled, one by one: waiting tasks
        will not run, and running attempts are stopped. Keep this page open until it is done.</p>
        ${failed && html`<p>Of the failed tasks, only those that halt their lane can be cancelled.</p>`}
        ${more && html`<p>There are more matching tasks. Cancel them when these are done.</p>`}`,
      action: `Cancel ${count(ids.length)}`, danger: true,
    });
    if (sure) doTo("cancel", ids, begun);
  } catch (error) {
    tellError(error, "The tasks could not be counted");
  }
}

/** Runs all that match again. A redrive cannot mean a single event: its tasks are few, and are gathered.
 * @param {Wanted} wanted @param {() => void} redrive @param {() => void} begun */
async function retryAll(wanted, redrive, begun) {
  if (scopeOf(wanted)) return redrive();
  try {
    const { ids } = await idsOf(wanted, MOST, canRetry);
    if (ids.length === 0) await ask({ title: "Nothing to run again", text: "No matching task has failed or was cancelled.", action: "OK" });
    else doTo("retry", ids, begun);
  } catch (error) {
    tellError(error, "The tasks could not be counted");
  }
  return undefined;
}

/** @param {{rows: Task[], wanted: Wanted, selection: Selection, more: boolean, onChange: (selection: Selection) => void,
 *   onRedrive: () => void}} props `more`: not all that match are among the rows */
export function Chosen({ rows, wanted, selection, more, onChange, onRedrive }) {
  const { chosen, all } = selection;
  const picked = all || chosen.size === 0 ? [] : rows.filter((task) => chosen.has(task.id));
  const again = picked.filter(canRetry).map((task) => task.id);
  const end = picked.filter(canCancel).map((task) => task.id);
  const none = () => onChange({ chosen: new Set(), all: false });
  const doRetry = () => {
    if (all) retryAll(wanted, onRedrive, none);
    else if (again.length) doTo("retry", again, none);
  };
  const doCancel = () => {
    if (all) cancelAll(wanted, none);
    else if (end.length) doTo("cancel", end, none);
  };
  const some = all || picked.length > 0;
  const operator = may("operator");
  useShortcuts({
    ...(operator && { r: { what: "Run the selected tasks again", run: doRetry, when: () => some } }),
    ...(operator && { c: { what: "Cancel the selected tasks", run: doCancel, when: () => some } }),
    a: { what: "Select all matching tasks", run: () => onChange({ chosen: new Set(), all: true }), when: () => rows.length > 0 },
    Escape: { what: "Clear the selection", run: none, when: () => some },
  });
  if (!some) return null;
  return html`<div class="chosen-bar" role="group" aria-label="Selected tasks">
    <b>${all ? `All matching tasks are selected${more ? "" : `: ${count(rows.length)}`}` : `${counted(picked.length, "task")} selected`}</b>
    ${!all && html`<${Button} small kind="quiet" onClick=${() => onChange({ chosen: new Set(), all: true })}>Select all matching<//>`}
    <${Button} small icon="retry" role="operator" disabled=${!all && again.length === 0} onClick=${doRetry}
      title="Failed and cancelled tasks (r)">${all ? "Run again…" : `Run ${again.length} again`}<//>
    <${Button} small icon="stop" role="operator" disabled=${!all && end.length === 0} onClick=${doCancel}
      title="Tasks that have not ended, or halt their lane (c)">${all ? "Cancel…" : `Cancel ${end.length}`}<//>
    <${Button} small kind="quiet" icon="close" onClick=${none}>Clear selection<//>
  </div>`;
}
