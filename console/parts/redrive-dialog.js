// The dialog that starts a redrive: it counts the tasks and asks for rate and canary.

import { errorText } from "../data/problem.js";
import { startRedrive, buildRedriveBody, countRedriveTasks, describeRedriveScope } from "../data/redrives.js";
import { formatCount, pluralize } from "../data/numbers.js";
import { Button } from "./button.js";
import { cliCommand, CopyAsMenu } from "./copy.js";
import { Dialog } from "./dialog.js";
import { TaskLink } from "./link.js";
import { refreshRedrives } from "./redrive-progress.js";
import { runWithUndo } from "./actions.js";
import { html, useEffect, useId, useState } from "./ui.js";

/** @typedef {import("../data/redrives.js").RedriveScope} RedriveScope */
/** @typedef {{matched: number, more: boolean, sample: string[]}} RedriveCount */

const REDRIVE_STATUS_CHOICES = [["FAILED", "Failed"], ["CANCELED", "Cancelled"], ["error", "Failed and cancelled"]];
/** How many sample tasks are listed. */
const MAX_SAMPLE_TASKS = 5;

/** @param {{scope: RedriveScope, onClose: () => void}} props */
export function RedriveDialog({ scope, onClose }) {
  const id = useId();
  const [status, setStatus] = useState(scope.status);
  const [rate, setRate] = useState("");
  const [canary, setCanary] = useState("");
  const [count, setCount] = useState(/** @type {RedriveCount | null} */ (null));
  const [error, setError] = useState(/** @type {unknown} */ (null));
  const selectedScope = { ...scope, status };
  useEffect(() => {
    const countAbort = new AbortController();
    setCount(null);
    setError(null);
    countRedriveTasks(selectedScope, countAbort.signal).then(setCount, (problem) => {
      if (!countAbort.signal.aborted) setError(problem);
    });
    return () => countAbort.abort();
  }, [status]);

  const inputError = rate !== "" && !/^[1-9]\d{0,5}\/[smhd]$/.test(rate) ? "Write the rate like 10/s or 100/m"
    : canary !== "" && !/^([1-9]\d{0,2}|1000)$/.test(canary) ? "The canary is a number from 1 to 1000" : "";
  const options = { ...(rate && { rate }), ...(canary && { canary: Number(canary) }) };
  const scopeText = describeRedriveScope(selectedScope);
  /** @param {Event} event */
  const submit = (event) => {
    event.preventDefault();
    if (!count?.matched || inputError) return;
    onClose();
    runWithUndo({ text: `${pluralize(count.matched, "task")} will be run again: ${scopeText}`, run: () => startRedrive(selectedScope, options).finally(refreshRedrives) });
  };
  return html`<${Dialog} title="Redrive" onClose=${onClose}>
    <form onSubmit=${submit}>
      <div class="dialog-text">Runs ${scopeText} again, the oldest first, each at the end of its lane.</div>
      <div class="field">
        <label for=${`${id}-status`}>Status</label>
        <select id=${`${id}-status`} value=${status} onChange=${(/** @type {Event} */ event) => setStatus(/** @type {HTMLSelectElement} */ (event.target).value)}>
          ${REDRIVE_STATUS_CHOICES.map(([value, label]) => html`<option key=${value} value=${value}>${label}</option>`)}
        </select>
      </div>
      <div class="redrive-count" role="status">${renderMatchCount(count, error)}</div>
      <div class="redrive-options">
        <div class="field"><label for=${`${id}-rate`}>Rate <span class="faint">optional</span></label>
          <input id=${`${id}-rate`} value=${rate} placeholder="10/s" autocomplete="off" onInput=${(/** @type {Event} */ event) => setRate(/** @type {HTMLInputElement} */ (event.target).value.trim())} />
          <span class="hint">At most this many per second (s), minute (m), hour (h) or day (d)</span></div>
        <div class="field"><label for=${`${id}-canary`}>Canary <span class="faint">optional</span></label>
          <input id=${`${id}-canary`} value=${canary} placeholder="5" inputmode="numeric" autocomplete="off" onInput=${(/** @type {Event} */ event) => setCanary(/** @type {HTMLInputElement} */ (event.target).value.trim())} />
          <span class="hint">Runs this many first, and the rest only if they succeed</span></div>
      </div>
      ${inputError && html`<p class="notice warn" role="alert">${inputError}</p>`}
      <div class="dialog-actions">
        <${CopyAsMenu} call=${{ method: "POST", path: "/api/v1/tasks/redrive", body: buildRedriveBody(selectedScope, options) }} cli=${redriveCliCommand(selectedScope, rate, canary)} />
        <${Button} onClick=${onClose}>Dismiss<//>
        <${Button} type="submit" kind="primary" disabled=${!count?.matched || inputError !== ""}>${count ? `Run ${formatCount(count.matched)} again` : "Run again"}<//>
      </div>
    </form>
  <//>`;
}

/** @param {RedriveCount | null} count @param {unknown} error */
function renderMatchCount(count, error) {
  if (error) return html`<span class="bad-text">${errorText(error)}</span>`;
  if (!count) return html`<span class="faint">Counting…</span>`;
  if (count.matched === 0) return html`<span>No task matches.</span>`;
  return html`<b class="number">${count.more ? "More than " : ""}${pluralize(count.matched, "task")}</b>
    <ul>${count.sample.slice(0, MAX_SAMPLE_TASKS).map((id) => html`<li key=${id}><${TaskLink} id=${id} short /></li>`)}</ul>
    ${count.matched > MAX_SAMPLE_TASKS && html`<span class="faint">These are the newest.</span>`}`;
}

/** @param {RedriveScope} scope @param {string} rate @param {string} canary */
function redriveCliCommand({ handler, collection, tenant, key, status, start, end }, rate, canary) {
  /** @type {[string, string | undefined][]} */
  const filterFlags = [["--handler", handler], ["--collection", collection], ["--tenant", tenant], ["--key", key], ["--start", start], ["--end", end]];
  /** @param {[string, string | undefined][]} flags */
  const flagList = (flags) => flags.flatMap(([name, value]) => (value ? [name, value] : []));
  const scopeFlags = flagList(filterFlags);
  return cliCommand("tasks", "redrive", ...(scopeFlags.length ? scopeFlags : ["--all"]), ...(status === "FAILED" ? [] : ["--status", status]),
    ...flagList([["--rate", rate], ["--canary", canary]]));
}
