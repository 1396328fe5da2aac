// Why a task does not run: the gates that it has to pass, in order, each with what holds it and the way there.

import { api, segment } from "../../data/api.js";
import { useFollowed } from "../../data/follow.js";
import { Shape } from "../../parts/badge.js";
import { Panel } from "../../parts/facts.js";
import { HandlerLink, Link, TaskLink } from "../../parts/link.js";
import { Shown } from "../../parts/states.js";
import { Ago } from "../../parts/time.js";
import { Told } from "../../parts/told.js";
import { classes, html, useRef } from "../../parts/ui.js";
import { places } from "../../shell/router.js";

/** @typedef {import("../../data/bodies.js").Why} Why */
/** @typedef {import("../../data/bodies.js").Gate} Gate */
/** @typedef {import("../../data/bodies.js").Rule} Rule */
/** @typedef {import("../../data/follow.js").Followed<Why>} Followed */

/** What the gates are called. @type {Record<string, string>} */
const NAMES = {
  handler: "Handler", sync: "Synchronous handlers", lane: "Lane", order: "Order", due: "Due time", rule: "Pauses and blocks",
  concurrency_per_key: "Concurrency per object", concurrency: "Concurrency", rate: "Rate limit", target: "Target",
  worker: "Worker", turn: "Fairness",
};
/** Tasks that hold a gate and are named. */
const MOST_NAMED = 5;

/** @param {string} id
 * @returns {Followed} */
export function useWhy(id) {
  const waits = useRef(false);
  return useFollowed({
    read: async (signal) => {
      const why = /** @type {Why} */ (await api.get(`/api/v1/tasks/${segment(id)}/why`, { signal }));
      waits.current = why.gates.length > 0;
      return why;
    },
    filter: { tasks: true },
    calm: 500,
    apply: (data, { tasks }) => {
      const holders = new Set([id, ...data.gates.flatMap((gate) => gate.tasks)]);
      return tasks.some((change) => holders.has(change.id)) ? null : data;
    },
    // Rules, limits and turns change without a word on the stream.
    get every() {
      return waits.current ? 2500 : undefined;
    },
  }, [id]);
}

/** @param {{why: Followed}} props */
export function Why({ why }) {
  // What runs or has ended has no gates left to pass: a sentence says it.
  if (why.data?.gates.length === 0) return html`<p class="why-line soft"><${Told} text=${why.data.summary} whole /></p>`;
  return html`<${Panel} title="Why it is waiting">
    <${Shown} of=${why} lines=${3}>${(/** @type {Why} */ { summary, gates }) => html`
      <p class="why-summary"><${Told} text=${summary} tasks=${gates.flatMap((gate) => gate.tasks)} whole /></p>
      <ol class="gates" aria-label="Conditions, in order">
        ${gates.map((gate, index) => html`<${One} key=${`${gate.gate}${index}`} gate=${gate} first=${index === gates.findIndex((one) => !one.open)} />`)}
      </ol>`}<//>
  <//>`;
}

/** @param {{gate: Gate, first: boolean}} props `first`: the one that counts now */
function One({ gate, first }) {
  const { open, detail, until, rule } = gate;
  // The sentence names most of them itself.
  const tasks = gate.tasks.filter((id) => !detail.includes(id));
  return html`<li class=${classes("gate", !open && "shut", first && "first")}>
    <${Shape} tone=${open ? "good" : gate.gate === "handler" ? "bad" : "warn"} />
    <div class="gate-words">
      <span class="gate-name">${NAMES[gate.gate] ?? gate.gate}<span class="unseen">: ${open ? "met" : "not met"}</span></span>
      <div class="gate-detail"><${Told} text=${detail} tasks=${gate.tasks} />${until && html`<span class="gate-until">until <${Ago} at=${until} /></span>`}
        ${(tasks.length > 0 || rule) && html`<ul class="gate-holders" aria-label="Blocked by">
          ${tasks.slice(0, MOST_NAMED).map((id) => html`<li key=${id}><${TaskLink} id=${id} short /></li>`)}
          ${tasks.length > MOST_NAMED && html`<li class="faint">and ${tasks.length - MOST_NAMED} more</li>`}
          ${rule && html`<li>${holder(rule)}</li>`}
        </ul>`}</div>
    </div>
  </li>`;
}

/** Where a rule is lifted. @param {Rule} rule */
function holder({ kind, space, name, tenant }) {
  const whose = tenant ? ` for the tenant ${tenant}` : "";
  const place = space === "chain" ? html`<${Link} to=${places.chain(name)}>${name}<//>`
    : space === "schedule" ? html`<${Link} to=${places.schedule(name)}>${name}<//>`
    : html`<${HandlerLink} name=${name.split("/")[0]} />`;
  return html`<span>the ${kind} of ${place}${whose}</span>`;
}
