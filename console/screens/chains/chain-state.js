// The state badge of a chain.

import { Badge } from "../../parts/badge.js";
import { html } from "../../parts/ui.js";

/** @typedef {import("../../data/api-types.js").Chain} Chain */

/** @param {{chain: Chain}} props */
export function ChainStateBadge({ chain: { state, rules, defined, stranded, orders } }) {
  const rule = rules.find((candidate) => candidate.kind === "block") ?? rules[0];
  if (state === "stopped") return html`<${Badge} tone="bad" title="Its orders start no step">Stopped<//>`;
  if (rule) return html`<${Badge} tone=${rule.kind === "block" ? "bad" : "warn"} title=${rule.reason ?? ""}>${rule.kind === "block" ? "Blocked" : "Paused"}${rule.tenant === null ? "" : " for some tenants"}<//>`;
  if (!defined) return html`<${Badge} tone="warn">Removed<//>`;
  if (stranded.length) return html`<${Badge} tone="bad" title="Some orders are at nodes that the chain no longer has">Stranded orders<//>`;
  return html`<${Badge} tone=${orders ? "busy" : "good"}>Running<//>`;
}
