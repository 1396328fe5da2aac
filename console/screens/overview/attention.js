// Problems that need attention, most severe first.

import { pluralize } from "../../data/numbers.js";
import { formatDuration, toMillis, formatRelative } from "../../data/time.js";
import { ToneIcon } from "../../parts/badge.js";
import { Link } from "../../parts/link.js";
import { html, useState } from "../../parts/ui.js";
import { Button } from "../../parts/button.js";
import { screenPaths } from "../../shell/router.js";
import { countReadyTasks } from "./data.js";

/** @typedef {import("../../data/api-types.js").Handler} Handler */
/** @typedef {import("../../data/api-types.js").Rule} Rule */
/** @typedef {{tone: "bad" | "warn", title: string, text?: string, to: string}} AttentionItem */

/** After this time a ready task counts as overdue. */
const OVERDUE_SECONDS = 60;
const MAX_COLLAPSED_ITEMS = 6;

/** @param {import("./data.js").OverviewData} overview @param {import("./samples.js").MetricsSample[]} samples
 * @returns {AttentionItem[]} */
export function listAttentionItems({ health, handlers, nodes, chains }, samples) {
  /** @type {AttentionItem[]} */
  const items = [];
  if (health?.store && !health.store.reachable) items.push({ tone: "bad", title: "The store does not respond", text: "run pointsman doctor to find out why", to: "/configuration" });
  else if (health?.store && !health.store.writable) items.push({ tone: "bad", title: "The store cannot be written", text: "emits are refused; run pointsman doctor to find out why", to: "/configuration" });
  for (const warning of health?.warnings ?? []) items.push({ tone: "warn", title: "Store warning", text: warning, to: "/configuration" });
  if (nodes && !nodes.some((node) => node.alive)) items.push({ tone: "bad", title: "No node is alive", text: "no task is run", to: "/nodes" });
  items.push(...handlers.flatMap(handlerAttentionItems));
  items.push(...failingHandlerItems(samples));
  const latestSamples = samples.slice(-15);
  if (latestSamples.length === 15 && latestSamples.every(({ slots, busySlots }) => slots !== null && busySlots !== null && slots > 0 && busySlots >= slots)) {
    items.push({ tone: "warn", title: "All slots are in use", text: "add workers or another node to run more tasks in parallel", to: "/nodes" });
  }
  for (const chain of chains) {
    if (chain.state === "stopped") items.push({ tone: "warn", title: `The chain ${chain.path} is stopped`, to: screenPaths.chain(chain.path) });
    for (const { id, action, orders } of chain.nodes) {
      if (action === "stop") items.push({ tone: "warn", title: `Node ${id} of ${chain.path} is stopped`, text: orders ? `${pluralize(orders, "order")} ${orders === 1 ? "waits" : "wait"} there` : "", to: screenPaths.chain(chain.path) });
    }
    const stranded = chain.stranded.reduce((sum, node) => sum + node.orders, 0);
    if (stranded) items.push({ tone: "bad", title: `${pluralize(stranded, "order")} of ${chain.path} ${stranded === 1 ? "is" : "are"} stranded`, text: "their node was removed from the chain: move them, or define it again", to: screenPaths.chain(chain.path) });
    items.push(...chain.rules.map((rule) => ruleAttentionItem(rule, screenPaths.chain(chain.path))));
  }
  return items.sort((a, b) => Number(b.tone === "bad") - Number(a.tone === "bad"));
}

/** @param {Handler} handler
 * @returns {AttentionItem[]} */
function handlerAttentionItems(handler) {
  const { name, counts, rules, oldest_runnable_seconds: oldest, defined } = handler;
  const to = screenPaths.handler(name);
  /** @type {(AttentionItem | false)[]} */
  const items = [
    counts.halted > 0 && { tone: "bad", title: `${pluralize(counts.halted, "lane")} of ${name} ${counts.halted === 1 ? "is" : "are"} halted`, text: "behind a failed task: run it again or cancel it", to },
    counts.missing > 0 && { tone: "bad", title: `${pluralize(counts.missing, "task")} of ${name} ${counts.missing === 1 ? "is" : "are"} missing`, text: defined ? "the handler is defined again: adopt them" : "the handler is no longer defined", to },
    oldest !== null && oldest > OVERDUE_SECONDS && rules.length === 0 && countReadyTasks(handler) > 0 && { tone: "warn", title: `${name} is behind by ${formatDuration(oldest * 1000)}`, text: "its oldest ready task has waited that long", to },
    ...rules.map((rule) => ruleAttentionItem(rule, to)),
  ];
  return /** @type {AttentionItem[]} */ (items.filter(Boolean));
}

/** @param {Rule} rule @param {string} to
 * @returns {AttentionItem} */
function ruleAttentionItem({ kind, name, tenant, by, reason, since }, to) {
  const tenantText = tenant ? ` for ${tenant}` : "";
  const byText = by ? ` by ${by}` : "";
  const when = formatRelative(toMillis(since) ?? 0);
  return { tone: "warn", title: `${name} is ${kind === "pause" ? "paused" : "blocked"}${tenantText}`, text: `${when}${byText}${reason ? `: ${reason}` : ""}`, to };
}

/** Handlers with more than 20 % failed attempts (at least 3) in the last minute.
 * @param {import("./samples.js").MetricsSample[]} samples
 * @returns {AttentionItem[]} */
function failingHandlerItems(samples) {
  const lastMinute = samples.slice(-30);
  /** @type {Record<string, {ended: number, failed: number}>} */
  const sums = {};
  for (const { rates } of lastMinute) {
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
    to: "/failures",
  }));
}

/** @param {{items: AttentionItem[]}} props */
export function AttentionList({ items }) {
  const [showAll, setShowAll] = useState(false);
  if (items.length === 0) return html`<p class="all-clear"><${ToneIcon} tone="good" /> Nothing needs attention</p>`;
  const visibleItems = showAll ? items : items.slice(0, MAX_COLLAPSED_ITEMS);
  return html`<ul class="attention-list">
    ${visibleItems.map(({ tone, title, text, to }) => html`<li key=${title + text} class=${tone}>
      <${ToneIcon} tone=${tone} /><div><${Link} to=${to}><b>${title}</b><//>${text && html`<span class="soft"> ${text}</span>`}</div>
    </li>`)}
  </ul>
  ${items.length > MAX_COLLAPSED_ITEMS && html`<${Button} small kind="quiet" onClick=${() => setShowAll(!showAll)}>${showAll ? "Show fewer" : `Show ${items.length - MAX_COLLAPSED_ITEMS} more`}<//>`}`;
}
