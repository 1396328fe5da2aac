// One handler or source: how it runs, what leads to it, its queues, what holds it, and what it has missed.

import { api, segment } from "../../data/api.js";
import { useFollowed } from "../../data/follow.js";
import { count } from "../../data/numbers.js";
import { duration } from "../../data/time.js";
import { Button } from "../../parts/button.js";
import { Chart } from "../../parts/chart.js";
import { cli, CopyAs } from "../../parts/copy.js";
import { Head, Panel } from "../../parts/facts.js";
import { Link } from "../../parts/link.js";
import { HoldButtons, Rules } from "../../parts/rules.js";
import { Shown } from "../../parts/states.js";
import { html, useMemo } from "../../parts/ui.js";
import { places } from "../../shell/router.js";
import { samples, useSamples } from "../overview/samples.js";
import { askReplay, mayAdopt, Missing, Replaying } from "./adopt.js";
import { Queues } from "./queues.js";
import { Routes, Runs } from "./runs.js";
import { Source } from "./source.js";
import { State } from "./state.js";

/** @typedef {import("../../data/bodies.js").Handler} Handler */
/** @typedef {{eventId: number, handler: Handler, chains: import("../../data/bodies.js").Chain[], schedules: import("../../data/bodies.js").Schedule[]}} Known */

/** @param {string} name @param {AbortSignal} signal
 * @returns {Promise<Known>} */
async function read(name, signal) {
  const [handler, { chains }] = await Promise.all([
    api.get(`/api/v1/handlers/${segment(name)}`, { signal }),
    api.get("/api/v1/chains", { signal }),
  ]);
  const schedules = handler.source ? (await api.get("/api/v1/schedules", { query: { times: 1 }, signal })).schedules : [];
  return { eventId: handler.eventId, handler, chains, schedules };
}

/** @param {{params: Record<string, string>}} props */
export default function Screen({ params: { name } }) {
  useSamples();
  const known = useFollowed({
    read: (signal) => read(name, signal),
    filter: { tasks: true },
    calm: 1000,
    every: 4000,
    apply: (data, { tasks }) => (tasks.some((change) => change.handler === name) ? null : data),
  }, [name]);
  return html`<${Shown} of=${known} lines=${10} what="The handler could not be loaded">
    ${(/** @type {Known} */ data) => html`<${Detail} known=${data} after=${known.reload} />`}<//>`;
}

/** @param {{known: Known, after: () => void}} props */
function Detail({ known: { handler, chains, schedules }, after }) {
  const { name, rules, source, defined } = handler;
  const place = { space: /** @type {const} */ ("handler"), name };
  return html`
    <${Head} title=${name} sub=${html`<${State} handler=${handler} /><span>${source ? "source" : "handler"}</span>
      <${Link} to=${places.tasks({ handler: name })}>all tasks<//>`}>
      <${HoldButtons} place=${place} rules=${rules} after=${after} />
      ${!source && mayAdopt(handler) && html`<${Button} icon="retry" role="operator" onClick=${() => askReplay(name, after)}>Replay<//>`}
      <${CopyAs} call=${{ path: `/api/v1/handlers/${segment(name)}` }} cli=${cli("handlers", "show", name)} />
    <//>
    <${Missing} handler=${handler} after=${after} />
    <${Replaying} name=${name} />
    <${Figures} handler=${handler} />
    <div class="columns">
      <div class="stack">
        <${Queues} handler=${handler} after=${after} />
        <${Source} handler=${handler} schedules=${schedules} after=${after} />
        ${defined && html`<${Panel} title="Attempts per second" aside="of the node that serves this page"><${Rate} name=${name} /><//>`}
      </div>
      <div class="stack">
        <${Panel} title="Pauses and blocks"><${Rules} rules=${rules} own=${place} after=${after} /><//>
        <${Routes} handler=${handler} chains=${chains} />
        <${Runs} handler=${handler} />
      </div>
    </div>`;
}

/** @param {{handler: Handler}} props */
function Figures({ handler: { name, counts, oldest_runnable_seconds: oldest } }) {
  /** @type {[string, number, string, string][]} */
  const all = [
    ["Ready", counts.ready, "SCHEDULED", "Can run now"],
    ["Waiting", counts.waiting, "SCHEDULED", "Waiting for their due time, their lane, or synchronous handlers of the event"],
    ["Claimed", counts.scheduled, "SCHEDULED", "Claimed by a node, about to start"],
    ["Running", counts.running, "RUNNING", ""],
    ["Halted", counts.halted, "FAILED", "Failed, and halting their lane"],
    ["Missing", counts.missing, "missing", "Set aside while the handler was not defined"],
  ];
  return html`<dl class="figures">
    ${all.map(([word, number, status, title]) => html`<div key=${word} title=${title}><dt>${word}</dt>
      <dd class=${number ? "" : "zero"}>${number ? html`<${Link} to=${places.tasks({ handler: name, status })}>${count(number)}<//>` : "0"}</dd></div>`)}
    <div title="Waiting time of the oldest ready task"><dt>Oldest</dt>
      <dd class=${oldest === null ? "zero" : ""}>${oldest === null ? "–" : duration(oldest * 1000)}</dd></div>
  </dl>`;
}

/** @param {{name: string}} props */
function Rate({ name }) {
  const list = samples.value;
  const data = useMemo(() => /** @type {[number[], ...(number | null)[][]]} */ ([
    list.map((sample) => sample.at),
    list.map((sample) => (sample.events === null ? null : sample.rates[name]?.ended ?? 0)),
    list.map((sample) => (sample.events === null ? null : sample.rates[name]?.failed ?? 0)),
  ]), [list, name]);
  if (list.length < 2) return html`<p class="soft">Collecting data…</p>`;
  return html`<${Chart} height=${140} data=${data} label=${`Ended and failed attempts of ${name} per second`}
    lines=${[{ name: "Ended", tone: "accent", fill: true }, { name: "Failed", tone: "bad" }]} />`;
}
