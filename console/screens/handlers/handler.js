// One handler or source: settings, routes, queues, rules and missing tasks.

import { api, encodeSegment } from "../../data/api.js";
import { useLiveData } from "../../data/live-data.js";
import { formatCount } from "../../data/numbers.js";
import { formatDuration } from "../../data/time.js";
import { Button } from "../../parts/button.js";
import { LineChart } from "../../parts/chart.js";
import { cliCommand, CopyAsMenu } from "../../parts/copy.js";
import { ScreenHeader, Panel } from "../../parts/panel.js";
import { Link } from "../../parts/link.js";
import { RuleButtons, RuleList } from "../../parts/rules.js";
import { LiveView } from "../../parts/states.js";
import { html, useMemo } from "../../parts/ui.js";
import { screenPaths } from "../../shell/router.js";
import { metricsSamples, useRateSampling } from "../overview/samples.js";
import { promptAndReplay, mayAdoptTasks, MissingTasksNotice, ReplayProgress } from "./adopt.js";
import { QueueTable } from "./queues.js";
import { HandlerRoutes, HandlerSettings } from "./settings.js";
import { SourceCollections } from "./source.js";
import { HandlerStateBadge } from "./handler-state.js";

/** @typedef {import("../../data/api-types.js").Handler} Handler */
/** @typedef {{eventId: number, handler: Handler, chains: import("../../data/api-types.js").Chain[], schedules: import("../../data/api-types.js").Schedule[]}} HandlerData */

/** @param {string} name @param {AbortSignal} signal
 * @returns {Promise<HandlerData>} */
async function readHandler(name, signal) {
  const [handler, { chains }] = await Promise.all([
    api.get(`/api/v1/handlers/${encodeSegment(name)}`, { signal }),
    api.get("/api/v1/chains", { signal }),
  ]);
  const schedules = handler.source ? (await api.get("/api/v1/schedules", { query: { times: 1 }, signal })).schedules : [];
  return { eventId: handler.eventId, handler, chains, schedules };
}

/** @param {{params: Record<string, string>}} props */
export default function HandlerScreen({ params: { name } }) {
  useRateSampling();
  const live = useLiveData({
    read: (signal) => readHandler(name, signal),
    filter: { tasks: true },
    minInterval: 1000,
    pollInterval: 4000,
    apply: (data, { tasks }) => (tasks.some((change) => change.handler === name) ? null : data),
  }, [name]);
  return html`<${LiveView} live=${live} lines=${10} errorTitle="The handler could not be loaded">
    ${(/** @type {HandlerData} */ data) => html`<${HandlerDetail} data=${data} onChange=${live.reload} />`}<//>`;
}

/** @param {{data: HandlerData, onChange: () => void}} props */
function HandlerDetail({ data: { handler, chains, schedules }, onChange }) {
  const { name, rules, source, defined } = handler;
  const ruleTarget = { space: /** @type {const} */ ("handler"), name };
  return html`
    <${ScreenHeader} title=${name} subtitle=${html`<${HandlerStateBadge} handler=${handler} /><span>${source ? "source" : "handler"}</span>
      <${Link} to=${screenPaths.tasks({ handler: name })}>all tasks<//>`}>
      <${RuleButtons} target=${ruleTarget} rules=${rules} onChange=${onChange} />
      ${!source && mayAdoptTasks(handler) && html`<${Button} icon="retry" role="operator" onClick=${() => promptAndReplay(name, onChange)}>Replay<//>`}
      <${CopyAsMenu} call=${{ path: `/api/v1/handlers/${encodeSegment(name)}` }} cli=${cliCommand("handlers", "show", name)} />
    <//>
    <${MissingTasksNotice} handler=${handler} onChange=${onChange} />
    <${ReplayProgress} name=${name} />
    <${TaskCounts} handler=${handler} />
    <div class="columns">
      <div class="stack">
        <${QueueTable} handler=${handler} onChange=${onChange} />
        <${SourceCollections} handler=${handler} schedules=${schedules} onChange=${onChange} />
        ${defined && html`<${Panel} title="Attempts per second" aside="of the node that serves this page"><${AttemptChart} name=${name} /><//>`}
      </div>
      <div class="stack">
        <${Panel} title="Pauses and blocks"><${RuleList} rules=${rules} target=${ruleTarget} onChange=${onChange} /><//>
        <${HandlerRoutes} handler=${handler} chains=${chains} />
        <${HandlerSettings} handler=${handler} />
      </div>
    </div>`;
}

/** @param {{handler: Handler}} props */
function TaskCounts({ handler: { name, counts, oldest_runnable_seconds: oldest } }) {
  /** @type {[string, number, string, string][]} */
  const counters = [
    ["Ready", counts.ready, "SCHEDULED", "Can run now"],
    ["Waiting", counts.waiting, "SCHEDULED", "Waiting for their due time, their lane, or synchronous handlers of the event"],
    ["Claimed", counts.scheduled, "SCHEDULED", "Claimed by a node, about to start"],
    ["Running", counts.running, "RUNNING", ""],
    ["Halted", counts.halted, "FAILED", "Failed, and halting their lane"],
    ["Missing", counts.missing, "missing", "Set aside while the handler was not defined"],
  ];
  return html`<dl class="task-counts">
    ${counters.map(([label, number, status, title]) => html`<div key=${label} title=${title}><dt>${label}</dt>
      <dd class=${number ? "" : "zero"}>${number ? html`<${Link} to=${screenPaths.tasks({ handler: name, status })}>${formatCount(number)}<//>` : "0"}</dd></div>`)}
    <div title="Waiting time of the oldest ready task"><dt>Oldest</dt>
      <dd class=${oldest === null ? "zero" : ""}>${oldest === null ? "–" : formatDuration(oldest * 1000)}</dd></div>
  </dl>`;
}

/** @param {{name: string}} props */
function AttemptChart({ name }) {
  const list = metricsSamples.value;
  const data = useMemo(() => /** @type {[number[], ...(number | null)[][]]} */ ([
    list.map((sample) => sample.at),
    list.map((sample) => (sample.events === null ? null : sample.rates[name]?.ended ?? 0)),
    list.map((sample) => (sample.events === null ? null : sample.rates[name]?.failed ?? 0)),
  ]), [list, name]);
  if (list.length < 2) return html`<p class="soft">Collecting data…</p>`;
  return html`<${LineChart} height=${140} data=${data} label=${`Ended and failed attempts of ${name} per second`}
    lines=${[{ name: "Ended", tone: "accent", fill: true }, { name: "Failed", tone: "bad" }]} />`;
}
