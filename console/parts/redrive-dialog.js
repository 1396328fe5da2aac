// Asks before many failed tasks are run again: how many that would be, how fast, and whether a few go first.

import { errorText } from "../data/problem.js";
import { startRedrive, redriveBody, countRedrive, describeScope } from "../data/redrives.js";
import { formatCount, pluralize } from "../data/numbers.js";
import { Button } from "./button.js";
import { cliCommand, CopyAsMenu } from "./copy.js";
import { Dialog } from "./dialog.js";
import { TaskLink } from "./link.js";
import { refreshRedrives } from "./redrive-progress.js";
import { runWithUndo } from "./toast.js";
import { html, useEffect, useId, useState } from "./ui.js";

/** @typedef {import("../data/redrives.js").RedriveScope} RedriveScope */
/** @typedef {{matched: number, more: boolean, sample: string[]}} RedriveCount */

const STATUS_CHOICES = [["FAILED", "Failed"], ["CANCELED", "Cancelled"], ["error", "Failed and cancelled"]];
/** How many of those it is about are named. */
const MAX_NAMED = 5;

/** @param {{scope: RedriveScope, onClose: () => void}} props */
export function RedriveDialog({ scope, onClose }) {
  const id = useId();
  const [status, setStatus] = useState(scope.status);
  const [rate, setRate] = useState("");
  const [canary, setCanary] = useState("");
  const [found, setFound] = useState(/** @type {RedriveCount | null} */ (null));
  const [error, setError] = useState(/** @type {unknown} */ (null));
  const chosen = { ...scope, status };
  useEffect(() => {
    const reading = new AbortController();
    setFound(null);
    setError(null);
    countRedrive(chosen, reading.signal).then(setFound, (problem) => {
      if (!reading.signal.aborted) setError(problem);
    });
    return () => reading.abort();
  }, [status]);

  const wrong = rate !== "" && !/^[1-9]\d{0,5}\/[smhd]$/.test(rate) ? "Write the rate like 10/s or 100/m"
    : canary !== "" && !/^([1-9]\d{0,2}|1000)$/.test(canary) ? "The canary is a number from 1 to 1000" : "";
  const how = { ...(rate && { rate }), ...(canary && { canary: Number(canary) }) };
  const words = describeScope(chosen);
  /** @param {Event} event */
  const begin = (event) => {
    event.preventDefault();
    if (!found?.matched || wrong) return;
    onClose();
    runWithUndo({ text: `${pluralize(found.matched, "task")} will be run again: ${words}`, run: () => startRedrive(chosen, how).finally(refreshRedrives) });
  };
  return html`<${Dialog} title="Redrive" onClose=${onClose}>
    <form onSubmit=${begin}>
      <div class="dialog-text">Runs ${words} again, the oldest first, each at the end of its lane.</div>
      <div class="field">
        <label for=${`${id}-status`}>Status</label>
        <select id=${`${id}-status`} value=${status} onChange=${(/** @type {Event} */ event) => setStatus(/** @type {HTMLSelectElement} */ (event.target).value)}>
          ${STATUS_CHOICES.map(([value, name]) => html`<option key=${value} value=${value}>${name}</option>`)}
        </select>
      </div>
      <div class="redrive-count" role="status">${renderCount(found, error)}</div>
      <div class="redrive-how">
        <div class="field"><label for=${`${id}-rate`}>Rate <span class="faint">optional</span></label>
          <input id=${`${id}-rate`} value=${rate} placeholder="10/s" autocomplete="off" onInput=${(/** @type {Event} */ event) => setRate(/** @type {HTMLInputElement} */ (event.target).value.trim())} />
          <span class="hint">At most this many per second (s), minute (m), hour (h) or day (d)</span></div>
        <div class="field"><label for=${`${id}-canary`}>Canary <span class="faint">optional</span></label>
          <input id=${`${id}-canary`} value=${canary} placeholder="5" inputmode="numeric" autocomplete="off" onInput=${(/** @type {Event} */ event) => setCanary(/** @type {HTMLInputElement} */ (event.target).value.trim())} />
          <span class="hint">Runs this many first, and the rest only if they succeed</span></div>
      </div>
      ${wrong && html`<p class="notice warn" role="alert">${wrong}</p>`}
      <div class="dialog-actions">
        <${CopyAsMenu} call=${{ method: "POST", path: "/api/v1/tasks/redrive", body: redriveBody(chosen, how) }} cli=${redriveCommand(chosen, rate, canary)} />
        <${Button} onClick=${onClose}>Dismiss<//>
        <${Button} type="submit" kind="primary" disabled=${!found?.matched || wrong !== ""}>${found ? `Run ${formatCount(found.matched)} again` : "Run again"}<//>
      </div>
    </form>
  <//>`;
}

/** @param {RedriveCount | null} found @param {unknown} error */
function renderCount(found, error) {
  if (error) return html`<span class="bad-text">${errorText(error)}</span>`;
  if (!found) return html`<span class="faint">Counting…</span>`;
  if (found.matched === 0) return html`<span>No task matches.</span>`;
  return html`<b class="number">${found.more ? "More than " : ""}${pluralize(found.matched, "task")}</b>
    <ul>${found.sample.slice(0, MAX_NAMED).map((id) => html`<li key=${id}><${TaskLink} id=${id} short /></li>`)}</ul>
    ${found.matched > MAX_NAMED && html`<span class="faint">the newest</span>`}`;
}

/** @param {RedriveScope} scope @param {string} rate @param {string} canary */
function redriveCommand({ handler, collection, tenant, key, status, start, end }, rate, canary) {
  /** @type {[string, string | undefined][]} */
  const narrowing = [["--handler", handler], ["--collection", collection], ["--tenant", tenant], ["--key", key], ["--start", start], ["--end", end]];
  /** @param {[string, string | undefined][]} flags */
  const given = (flags) => flags.flatMap(([name, value]) => (value ? [name, value] : []));
  const which = given(narrowing);
  return cliCommand("tasks", "redrive", ...(which.length ? which : ["--all"]), ...(status === "FAILED" ? [] : ["--status", status]),
    ...given([["--rate", rate], ["--canary", canary]]));
}
