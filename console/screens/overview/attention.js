// What somebody should look at, the worst first.

import { pluralize } from "../../data/numbers.js";
import { formatDuration, toMillis, formatRelative } from "../../data/time.js";
import { StatusIcon } from "../../parts/badge.js";
import { Link } from "../../parts/link.js";
import { html, useState } from "../../parts/ui.js";
import { Button } from "../../parts/button.js";
import { screenExists, screenPaths } from "../../shell/router.js";

/** @typedef {import("../../data/api-types.js").Handler} Handler */
/** @typedef {import("../../data/api-types.js").Rule} Rule */
/** @typedef {{tone: "bad" | "warn", title: string, text?: string, to: string}} AttentionItem */

/** From when on work that could run has waited long. */
const OVERDUE_SECONDS = 60;
const FIRST_ITEMS = 6;

/** @param {import("./data.js").OverviewData} facts @param {import("./samples.js").MetricsSample[]} samples
 * @returns {AttentionItem[]} */
export function listAttentionItems({ health, handlers, nodes, chains }, samples) {
  /** @type {AttentionItem[]} */
  const found = [];
  if (health?.store && !health.store.reachable) found.push({ tone: "bad", title: "The store does not respond", text: "run pointsman doctor to find out why", to: "/configuration" });
  else if (health?.store && !health.store.writable) found.push({ tone: "bad", title: "The store cannot be written", text: "emits are refused; run pointsman doctor to find out why", to: "/configuration" });
  for (const warning of health?.warnings ?? []) found.push({ tone: "warn", title: "Store warning", text: warning, to: "/configuration" });
  if (nodes && !nodes.some((node) => node.alive)) found.push({ tone: "bad", title: "No node is alive", text: "no task is run", to: "/nodes" });
  found.push(...handlers.flatMap(handlerItems));
  found.push(...failingHandlerItems(samples));
  const last = samples.slice(-15);
  if (last.length === 15 && last.every(({ slots, busy }) => slots !== null && busy !== null && slots > 0 && busy >= slots)) {
    found.push({ tone: "warn", title: "All slots are in use", text: "more workers, or another node, would run more at a time", to: "/nodes" });
  }
  for (const chain of chains) {
    if (chain.state === "stopped") found.push({ tone: "warn", title: `The chain ${chain.path} is stopped`, to: screenPaths.chain(chain.path) });
    const stranded = chain.stranded.reduce((sum, one) => sum + one.orders, 0);
    if (stranded) found.push({ tone: "bad", title: `${pluralize(stranded, "order")} of ${chain.path} ${stranded === 1 ? "is" : "are"} orphaned`, text: "their node was removed from the chain: move them, or define it again", to: screenPaths.chain(chain.path) });
    found.push(...chain.rules.map((rule) => ruleItem(rule, screenPaths.chain(chain.path))));
  }
  return found.sort((a, b) => Number(b.tone === "bad") - Number(a.tone === "bad"));
}

/** @param {Handler} handler
 * @returns {AttentionItem[]} */
function handlerItems({ name, counts, rules, oldest_runnable_seconds: oldest, defined }) {
  const to = screenExists(screenPaths.handler(name)) ? screenPaths.handler(name) : screenPaths.tasks({ handler: name });
  /** @type {(AttentionItem | false)[]} */
  const all = [
    counts.halted > 0 && { tone: "bad", title: `${pluralize(counts.halted, "lane")} of ${name} ${counts.halted === 1 ? "is" : "are"} halted`, text: "behind a failed task: run it again or cancel it", to },
    counts.missing > 0 && { tone: "bad", title: `${pluralize(counts.missing, "task")} of ${name} ${counts.missing === 1 ? "is" : "are"} missing`, text: defined ? "the handler is defined again: adopt them" : "the handler is no longer defined", to },
    oldest !== null && oldest > OVERDUE_SECONDS && rules.length === 0 && { tone: "warn", title: `${name} is behind by ${formatDuration(oldest * 1000)}`, text: "its oldest ready task has waited that long", to },
    ...rules.map((rule) => ruleItem(rule, to)),
  ];
  return /** @type {AttentionItem[]} */ (all.filter(Boolean));
}

/** @param {Rule} rule @param {string} to
 * @returns {AttentionItem} */
function ruleItem({ kind, name, tenant, by, reason, since }, to) {
  const whose = tenant ? ` for ${tenant}` : "";
  const who = by ? ` by ${by}` : "";
  const when = formatRelative(toMillis(since) ?? 0);
  return { tone: "warn", title: `${name} is ${kind === "pause" ? "paused" : "blocked"}${whose}`, text: `${when}${who}${reason ? `: ${reason}` : ""}`, to };
}

/** Handlers of which much fails these days: a fifth of the attempts of the last minute, and not only one or two.
 * @param {import("./samples.js").MetricsSample[]} samples
 * @returns {AttentionItem[]} */
function failingHandlerItems(samples) {
  const recent = samples.slice(-30);
  /** @type {Record<string, {ended: number, failed: number}>} */
  const sums = {};
  for (const { rates } of recent) {
    for (const [name, { ended, failed }] of Object.entries(rates)) {
      sums[name] ??= { ended: 0, failed: 0 };
      sums[name].ended += ended * 2;
      sums[name].failed += failed * 2;
    }
  }
  return Object.entries(sums).filter(([, { ended, failed }]) => failed >= 3 && failed / ended > 0.2).map(([name, { ended, failed }]) => ({
    tone: /** @type {const} */ ("bad"),
    title: `${name} is failing`,
    text: `${pluralize(Math.round(failed), "attempt")} of ${Math.round(ended)} in the last minute`,
    to: screenExists("/failures") ? "/failures" : screenPaths.tasks({ handler: name, status: "FAILED" }),
  }));
}

/** @param {{list: AttentionItem[]}} props */
export function AttentionList({ list }) {
  const [all, setAll] = useState(false);
  if (list.length === 0) return html`<p class="fine"><${StatusIcon} tone="good" /> Nothing needs attention</p>`;
  const shown = all ? list : list.slice(0, FIRST_ITEMS);
  return html`<ul class="concerns">
    ${shown.map(({ tone, title, text, to }) => html`<li key=${title + text} class=${tone}>
      <${StatusIcon} tone=${tone} /><div><${Link} to=${to}><b>${title}</b><//>${text && html`<span class="soft"> ${text}</span>`}</div>
    </li>`)}
  </ul>
  ${list.length > FIRST_ITEMS && html`<${Button} small kind="quiet" onClick=${() => setAll(!all)}>${all ? "Show fewer" : `Show ${list.length - FIRST_ITEMS} more`}<//>`}`;
}
