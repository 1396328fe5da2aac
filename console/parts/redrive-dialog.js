// The dialog that starts a redrive: it counts the tasks and asks for rate and canary.

import { errorText } from "../data/problem.js";
import { startRedrive, redriveBody, countRedrive, describeScope } from "../data/redrives.js";
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

const STATUS_CHOICES = [["FAILED", "Failed"], ["CANCELED", "Cancelled"], ["error", "Failed and cancelled"]];
/** How many sample tasks are listed. */
const MAX_NAMED = 5;

/** @param {{scope: RedriveScope, onClose: () => void}} props */
export function RedriveDialog({ scope, onClose }) {
  const id = useId();
  const [status, setStatus] = useState(scope.status);
  const [rate, setRate] = useState("");
  const [canary, setCanary] = useState("");
  const [counted, setFound] = useState(/** @type {RedriveCount | null} */ (null));
  const [error, setError] = useState(/** @type {unknown} */ (null));
  const selectedScope = { ...scope, status };
  useEffect(() => {
    const countAbort = new AbortController();
    setFound(null);
    setError(null);
    countRedrive(selectedScope, countAbort.signal).then(setFound, (problem) => {
      if (!countAbort.signal.aborted) setError(problem);
    });
    return () => countAbort.abort();
  }, [status]);

  const inputError = rate !== "" && !/^[1-9]\d{0,5}\/[smhd]$/.test(rate) ? "Write the rate like 10/s or 100/m"
    : canary !== "" && !/^([1-9]\d{0,2}|1000)$/.test(canary) ? "The canary is a number from 1 to 1000" : "";
  const options = { ...(rate && { rate }), ...(canary && { canary: Number(canary) }) };
  const scopeText = describeScope(selectedScope);
  /** @param {Event} event */
  const begin = (event) => {
    event.preventDefault();
    if (!counted?.matched || inputError) return;
    onClose();
    runWithUndo({ text: `${pluralize(counted.matched, "task")} will be run again: ${scopeText}`, run: () => startRedrive(selectedScope, options).finally(refreshRedrives) });
  };
  return html`<${Dialog} title="Redrive" onClose=${onClose}>
    <form onSubmit=${begin}>
      <div class="dialog-text">Runs ${scopeText} again, the oldest first, each at the end of its lane.</div>
      <div class="field">
        <label for=${`${id}-status`}>Status</label>
        <select id=${`${id}-status`} value=${status} onChange=${(/** @type {Event} */ event) => setStatus(/** @type {HTMLSelectElement} */ (event.target).value)}>
          ${STATUS_CHOICES.map(([value, name]) => html`<option key=${value} value=${value}>${name}</option>`)}
        </select>
      </div>
      <div class="redrive-count" role="status">${renderCount(counted, error)}</div>
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
        <${CopyAsMenu} call=${{ method: "POST", path: "/api/v1/tasks/redrive", body: redriveBody(selectedScope, options) }} cli=${redriveCommand(selectedScope, rate, canary)} />
        <${Button} onClick=${onClose}>Dismiss<//>
        <${Button} type="submit" kind="primary" disabled=${!counted?.matched || inputError !== ""}>${counted ? `Run ${formatCount(counted.matched)} again` : "Run again"}<//>
      </div>
    </form>
  <//>`;
}

/** @param {RedriveCount | null} counted @param {unknown} error */
function renderCount(counted, error) {
  if (error) return html`<span class="bad-text">${errorText(error)}</span>`;
  if (!counted) return html`<span class="faint">Counting…</span>`;
  if (counted.matched === 0) return html`<span>No task matches.</span>`;
  return html`<b class="number">${counted.more ? "More than " : ""}${pluralize(counted.matched, "task")}</b>
    <ul>${counted.sample.slice(0, MAX_NAMED).map((id) => html`<li key=${id}><${TaskLink} id=${id} short /></li>`)}</ul>
    ${counted.matched > MAX_NAMED && html`<span class="faint">the newest</span>`}`;
}

/** @param {RedriveScope} scope @param {string} rate @param {string} canary */
function redriveCommand({ handler, collection, tenant, key, status, start, end }, rate, canary) {
  /** @type {[string, string | undefined][]} */
  const narrowing = [["--handler", handler], ["--collection", collection], ["--tenant", tenant], ["--key", key], ["--start", start], ["--end", end]];
  /** @param {[string, string | undefined][]} flags */
  const flagList = (flags) => flags.flatMap(([name, value]) => (value ? [name, value] : []));
  const scopeFlags = flagList(narrowing);
  return cliCommand("tasks", "redrive", ...(scopeFlags.length ? scopeFlags : ["--all"]), ...(status === "FAILED" ? [] : ["--status", status]),
    ...flagList([["--rate", rate], ["--canary", canary]]));
}
