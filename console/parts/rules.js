// Shows pauses and blocks with author and reason, and sets and removes them.

import { setRule, removeRule, mayRemoveRule, requiredRoleForRule } from "../data/rules.js";
import { boundTenant } from "../data/session.js";
import { Badge } from "./badge.js";
import { Button } from "./button.js";
import { promptUser } from "./prompt.js";
import { runWithToast } from "./actions.js";
import { RelativeTime } from "./time.js";
import { html } from "./ui.js";

/** @typedef {import("../data/api-types.js").Rule} Rule */
/** @typedef {import("../data/rules.js").RuleTarget} RuleTarget */

/** @param {{rule: Rule}} props */
export function RuleBadge({ rule: { kind, reason } }) {
  return html`<${Badge} tone=${kind === "block" ? "bad" : "warn"} title=${reason ?? ""}>${kind === "block" ? "Blocked" : "Paused"}<//>`;
}

/** Lists rules with a button to remove each. `target` is the subject of the screen: a rule on a part of it names that
 * part.
 * @param {{rules: Rule[], target: RuleTarget, onChange: () => void}} props `onChange` is called after a rule was removed */
export function RuleList({ rules, target, onChange }) {
  if (rules.length === 0) return html`<p class="soft">Not paused or blocked.</p>`;
  return html`<ul class="rules">${rules.map((rule) => html`<li key=${`${rule.kind} ${rule.space} ${rule.name} ${rule.tenant}`}>
    <div class="rule-line"><${RuleBadge} rule=${rule} />
      <span>${describeRuleTarget(rule, target)}</span>
      ${mayRemoveRule(rule) && html`<${Button} small icon="play" onClick=${() => removeRuleWithToast(rule, onChange)}>${rule.kind === "block" ? "Unblock" : "Resume"}<//>`}
    </div>
    <p class="rule-author">${rule.kind === "block" ? "Blocked" : "Paused"}${rule.by ? html` by <b>${rule.by}</b>` : ""} <${RelativeTime} at=${rule.since} /></p>
    ${rule.reason && html`<p class="rule-reason">${rule.reason}</p>`}
  </li>`)}</ul>`;
}

/** Describes the part and the tenant that a rule applies to. @param {Rule} rule @param {RuleTarget} target */
function describeRuleTarget({ space, name, tenant }, target) {
  const subject = space === target.space ? "" : space === "collection" ? `the collection ${name.slice(name.indexOf("/") + 1)}` : `the ${space} ${name}`;
  const tenantText = tenant === null ? (space === "schedule" || subject ? "" : "for all tenants") : `for the tenant ${tenant}`;
  return [subject, tenantText].filter(Boolean).join(" ");
}

/** @param {Rule} rule @param {() => void} onChange */
async function removeRuleWithToast(rule, onChange) {
  const doneText = rule.kind === "block" ? "no longer blocked" : "no longer paused";
  if (await runWithToast(() => removeRule(rule), `${rule.name} is ${doneText}`, `${rule.name} was not resumed`)) onChange();
}

const RULE_EFFECT_TEXTS = {
  handler: "No new attempts start. Running attempts finish, and new tasks wait.",
  collection: "No new run starts. A running one finishes.",
  schedule: "Planned times pass without firing. After it is resumed, its catch-up policy decides which of them fire late.",
  chain: "No order of this chain starts a step. Running steps finish.",
};

/** Asks for a reason and sets the rule.
 * @param {Rule["kind"]} kind @param {RuleTarget} target @param {() => void} onChange @param {string} [tenant] preset
 * tenant */
export async function promptAndSetRule(kind, target, onChange, tenant = "") {
  const asksForTenant = target.space !== "schedule" && boundTenant.value === null;
  const verb = kind === "block" ? "Block" : "Pause";
  const values = await promptUser({
    title: `${verb} ${target.name}`,
    text: html`<p>${RULE_EFFECT_TEXTS[target.space]} ${kind === "block" ? "Only an admin can lift a block." : ""}</p>`,
    actionLabel: verb,
    danger: kind === "block",
    fields: [
      { name: "reason", label: "Reason", hint: "Shown to everybody who can see it." },
      ...(asksForTenant ? [{ name: "tenant", label: "Tenant", value: tenant, hint: "Empty: all tenants." }] : []),
    ],
  });
  if (!values) return;
  const doneText = `${target.name} is ${kind === "block" ? "blocked" : "paused"}${values.tenant?.trim() ? ` for ${values.tenant.trim()}` : ""}`;
  if (await runWithToast(() => setRule(kind, target, values), doneText, `${target.name} was not ${kind === "block" ? "blocked" : "paused"}`)) onChange();
}

/** Buttons that set rules; those that the token may not set are not rendered.
 * @param {{target: RuleTarget, rules: Rule[], onChange: () => void}} props */
export function RuleButtons({ target, rules, onChange }) {
  const ruleTenant = target.space === "schedule" ? null : boundTenant.value;
  const isSet = (/** @type {Rule["kind"]} */ kind) => rules.some((rule) => rule.kind === kind && rule.space === target.space && rule.tenant === ruleTenant);
  return html`
    ${!isSet("pause") && html`<${Button} icon="pause" role=${requiredRoleForRule("pause")} onClick=${() => promptAndSetRule("pause", target, onChange)}>Pause<//>`}
    ${!isSet("block") && html`<${Button} icon="block" role=${requiredRoleForRule("block")} onClick=${() => promptAndSetRule("block", target, onChange)}>Block<//>`}`;
}
