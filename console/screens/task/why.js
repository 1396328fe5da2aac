// Why a task waits: its gates in order, each with the tasks or rules that block it.

import { api, encodeSegment } from "../../data/api.js";
import { useLiveData } from "../../data/live-data.js";
import { ToneIcon } from "../../parts/badge.js";
import { Panel } from "../../parts/panel.js";
import { HandlerLink, Link, TaskLink } from "../../parts/link.js";
import { LiveView } from "../../parts/states.js";
import { RelativeTime } from "../../parts/time.js";
import { ServerText } from "../../parts/server-text.js";
import { classNames, html, useRef } from "../../parts/ui.js";
import { screenPaths } from "../../shell/router.js";

/** @typedef {import("../../data/api-types.js").TaskWhy} TaskWhy */
/** @typedef {import("../../data/api-types.js").Gate} Gate */
/** @typedef {import("../../data/api-types.js").Rule} Rule */
/** @typedef {import("../../data/live-data.js").LiveData<TaskWhy>} LiveWhy */

/** Labels of the gates. @type {Record<string, string>} */
const GATE_LABELS = {
  handler: "Handler", sync: "Synchronous handlers", lane: "Lane", order: "Order", due: "Due time", rule: "Pauses and blocks",
  concurrency_per_key: "Concurrency per object", concurrency: "Concurrency", rate: "Rate limit", target: "Target",
  worker: "Worker", turn: "Fairness",
};
/** Maximum blocking tasks that are listed. */
const MAX_BLOCKERS = 5;

/** @param {string} id
 * @returns {LiveWhy} */
export function useTaskWhy(id) {
  const isWaiting = useRef(false);
  return useLiveData({
    read: async (signal) => {
      const why = /** @type {TaskWhy} */ (await api.get(`/api/v1/tasks/${encodeSegment(id)}/why`, { signal }));
      isWaiting.current = why.gates.length > 0;
      return why;
    },
    filter: { tasks: true },
    minInterval: 500,
    apply: (data, { tasks }) => {
      const blockers = new Set([id, ...data.gates.flatMap((gate) => gate.tasks)]);
      return tasks.some((change) => blockers.has(change.id)) ? null : data;
    },
    // Rules, limits and fairness are not on the stream.
    get pollInterval() {
      return isWaiting.current ? 2500 : undefined;
    },
  }, [id]);
}

/** @param {{why: LiveWhy}} props */
export function WhyPanel({ why }) {
  // A running or ended task has no gates: only the summary is shown.
  if (why.data?.gates.length === 0) return html`<p class="why-line soft"><${ServerText} text=${why.data.summary} isSentence /></p>`;
  return html`<${Panel} title="Why it is waiting">
    <${LiveView} live=${why} lines=${3}>${(/** @type {TaskWhy} */ { summary, gates }) => html`
      <p class="why-summary"><${ServerText} text=${summary} taskIds=${gates.flatMap((gate) => gate.tasks)} isSentence /></p>
      <ol class="gates" aria-label="Conditions, in order">
        ${gates.map((gate, index) => html`<${GateRow} key=${`${gate.gate}${index}`} gate=${gate} isFirstClosed=${index === gates.findIndex((other) => !other.open)} />`)}
      </ol>`}<//>
  <//>`;
}

/** @param {{gate: Gate, isFirstClosed: boolean}} props */
function GateRow({ gate, isFirstClosed }) {
  const { open, detail, until, rule } = gate;
  // Tasks that the detail text names are links there.
  const unnamedTasks = gate.tasks.filter((id) => !detail.includes(id));
  return html`<li class=${classNames("gate", !open && "closed", isFirstClosed && "first-closed")}>
    <${ToneIcon} tone=${open ? "good" : gate.gate === "handler" ? "bad" : "warn"} />
    <div class="gate-text">
      <span class="gate-name">${GATE_LABELS[gate.gate] ?? gate.gate}<span class="visually-hidden">: ${open ? "met" : "not met"}</span></span>
      <div class="gate-detail"><${ServerText} text=${detail} taskIds=${gate.tasks} />${until && html`<span class="gate-until">until <${RelativeTime} at=${until} /></span>`}
        ${(unnamedTasks.length > 0 || rule) && html`<ul class="gate-blockers" aria-label="Blocked by">
          ${unnamedTasks.slice(0, MAX_BLOCKERS).map((id) => html`<li key=${id}><${TaskLink} id=${id} short /></li>`)}
          ${unnamedTasks.length > MAX_BLOCKERS && html`<li class="faint">and ${unnamedTasks.length - MAX_BLOCKERS} more</li>`}
          ${rule && html`<li>${ruleLink(rule)}</li>`}
        </ul>`}</div>
    </div>
  </li>`;
}

/** A link to the screen where the rule can be removed. @param {Rule} rule */
function ruleLink({ kind, space, name, tenant }) {
  const tenantText = tenant ? ` for the tenant ${tenant}` : "";
  const link = space === "chain" ? html`<${Link} to=${screenPaths.chain(name)}>${name}<//>`
    : space === "schedule" ? html`<${Link} to=${screenPaths.schedule(name)}>${name}<//>`
    : html`<${HandlerLink} name=${name.split("/")[0]} />`;
  return html`<span>the ${kind} of ${link}${tenantText}</span>`;
}
