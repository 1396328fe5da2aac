// Settings of a handler, and the routes to it.

import { formatDuration } from "../../data/time.js";
import { PropertyList, Panel } from "../../parts/panel.js";
import { Link } from "../../parts/link.js";
import { html } from "../../parts/ui.js";
import { screenPaths } from "../../shell/router.js";

/** @typedef {import("../../data/api-types.js").Handler} Handler */
/** @typedef {import("../../data/api-types.js").Chain} Chain */

/** @type {Record<string, string>} */
const RUN_KIND_DESCRIPTIONS = {
  http: "calls an HTTP target",
  command: "starts a program",
  pull: "external workers claim its tasks",
  "in-process": "calls a function of the program",
};

/** @type {Record<string, string>} */
const ORDERING_DESCRIPTIONS = { key: "tasks of one object run one after the other", none: "tasks run in any order" };

/** @type {Record<string, string>} */
const ON_ERROR_DESCRIPTIONS = { park: "the lane continues after a failed task", halt: "a failed task halts its lane until it is run again or cancelled" };

/** @param {{handler: Handler}} props */
export function HandlerSettings({ handler }) {
  const { run, target, timeout_seconds, order, on_error, retry_max, limits } = handler;
  const noneText = html`<span class="faint">none</span>`;
  return html`<${Panel} title="How it runs">
    <${PropertyList} items=${[
      ["Run", run === null ? html`<span class="soft">not on this node</span>` : html`${run}<span class="soft">: ${RUN_KIND_DESCRIPTIONS[run] ?? ""}</span>`],
      ["Target", target !== null && html`<span class="mono">${target}</span>`],
      ["Timeout", timeout_seconds !== null && formatDuration(timeout_seconds * 1000)],
      ["Ordering", order && html`${order}<span class="soft">: ${ORDERING_DESCRIPTIONS[order] ?? ""}</span>`],
      ["On error", on_error && html`${on_error}<span class="soft">: ${ON_ERROR_DESCRIPTIONS[on_error] ?? ""}</span>`],
      ["Retries", retry_max !== null && String(retry_max)],
      ["Concurrency", limits && (limits.concurrency ? `at most ${limits.concurrency} at a time` : noneText)],
      ["Per object", limits?.concurrency_per_key && `at most ${limits.concurrency_per_key} at a time`],
      ["Rate", limits && (limits.rate ? `at most ${limits.rate}` : noneText)],
      ["Weight", limits && limits.weight !== 1 && `${limits.weight} times the share of other queues`],
      ["Ageing", limits?.ageing_seconds && `priority grows by one every ${formatDuration(limits.ageing_seconds * 1000)} of waiting`],
    ]} />
  <//>`;
}

/** @param {{handler: Handler, chains: Chain[]}} props */
export function HandlerRoutes({ handler, chains }) {
  const steps = chains.flatMap((chain) => chain.nodes.filter((node) => node.handler === handler.name).map((node) => ({ chain: chain.path, node: node.id })));
  const hasNoRoutes = handler.routes.length + steps.length === 0;
  return html`<${Panel} title="Routes to this handler">
    ${hasNoRoutes && html`<p class="soft">${handler.source ? "None: a source is run by its schedules and on request." : "None: add it under event_handlers or to a chain."}</p>`}
    <ul class="routes">
      ${handler.routes.map(({ type, sync }) => html`<li key=${type}><span class="faint">events</span>
        <${Link} to=${screenPaths.stream({ return: type })} class="mono">${type}<//>${sync && html` <span class="tag" title="Runs before the queued handlers">sync</span>`}</li>`)}
      ${steps.map(({ chain, node }) => html`<li key=${`${chain} ${node}`}><span class="faint">orders of</span>
        <${Link} to=${screenPaths.chain(chain)} class="mono">${chain}<//><span class="faint">at ${node}</span></li>`)}
    </ul>
  <//>`;
}
