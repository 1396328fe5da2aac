// Pauses and blocks on the screen: which hold, who set them and why, setting one, lifting one.

import { setRule, removeRule, mayRemoveRule, requiredRole } from "../data/rules.js";
import { boundTenant } from "../data/session.js";
import { Badge } from "./badge.js";
import { Button } from "./button.js";
import { promptUser } from "./prompt.js";
import { runWithToast } from "./toast.js";
import { Ago } from "./time.js";
import { html } from "./ui.js";

/** @typedef {import("../data/api-types.js").Rule} Rule */
/** @typedef {import("../data/rules.js").RuleTarget} RuleTarget */

/** @param {{rule: Rule}} props */
export function RuleBadge({ rule: { kind, reason } }) {
  return html`<${Badge} tone=${kind === "block" ? "bad" : "warn"} title=${reason ?? ""}>${kind === "block" ? "Blocked" : "Paused"}<//>`;
}

/** All rules that hold something, each with the way out. `own` is what the screen is about: rules on a part of it say on
 * which.
 * @param {{rules: Rule[], own: RuleTarget, after: () => void}} props `after` is called when one was lifted */
export function RuleList({ rules, own, after }) {
  if (rules.length === 0) return html`<p class="soft">Not paused or blocked.</p>`;
  return html`<ul class="rules">${rules.map((rule) => html`<li key=${`${rule.kind} ${rule.space} ${rule.name} ${rule.tenant}`}>
    <div class="rule-line"><${RuleBadge} rule=${rule} />
      <span>${describeRuleTarget(rule, own)}</span>
      ${mayRemoveRule(rule) && html`<${Button} small icon="play" onClick=${() => confirmRemoval(rule, after)}>${rule.kind === "block" ? "Unblock" : "Resume"}<//>`}
    </div>
    <p class="rule-who">${rule.kind === "block" ? "Blocked" : "Paused"}${rule.by ? html` by <b>${rule.by}</b>` : ""} <${Ago} at=${rule.since} /></p>
    ${rule.reason && html`<p class="rule-why">${rule.reason}</p>`}
  </li>`)}</ul>`;
}

/** Whom or what a rule holds. @param {Rule} rule @param {RuleTarget} own */
function describeRuleTarget({ space, name, tenant }, own) {
  const part = space === own.space ? "" : space === "collection" ? `the collection ${name.slice(name.indexOf("/") + 1)}` : `the ${space} ${name}`;
  const whose = tenant === null ? (space === "schedule" || part ? "" : "for all tenants") : `for the tenant ${tenant}`;
  return [part, whose].filter(Boolean).join(" ");
}

/** @param {Rule} rule @param {() => void} after */
async function confirmRemoval(rule, after) {
  const done = rule.kind === "block" ? "no longer blocked" : "no longer paused";
  if (await runWithToast(() => removeRule(rule), `${rule.name} is ${done}`, `${rule.name} was not resumed`)) after();
}

const EFFECTS = {
  handler: "No new attempts start. Running attempts finish, and new tasks wait.",
  collection: "No new run starts. A running one finishes.",
  schedule: "Planned times pass without firing. After it is resumed, its catch-up policy decides which of them are made up.",
  chain: "No order of this chain starts a step. Running steps finish.",
};

/** Asks for the reason, and holds it.
 * @param {Rule["kind"]} kind @param {RuleTarget} place @param {() => void} after @param {string} [tenant] the one it is about */
export async function promptForRule(kind, place, after, tenant = "") {
  const tenants = place.space !== "schedule" && boundTenant.value === null;
  const word = kind === "block" ? "Block" : "Pause";
  const said = await promptUser({
    title: `${word} ${place.name}`,
    text: html`<p>${EFFECTS[place.space]} ${kind === "block" ? "Only an admin can lift a block." : ""}</p>`,
    action: word,
    danger: kind === "block",
    fields: [
      { name: "reason", label: "Reason", hint: "Shown to everybody who can see it." },
      ...(tenants ? [{ name: "tenant", label: "Tenant", value: tenant, hint: "Empty: all tenants." }] : []),
    ],
  });
  if (!said) return;
  const done = `${place.name} is ${kind === "block" ? "blocked" : "paused"}${said.tenant?.trim() ? ` for ${said.tenant.trim()}` : ""}`;
  if (await runWithToast(() => setRule(kind, place, said), done, `${place.name} was not ${kind === "block" ? "blocked" : "paused"}`)) after();
}

/** The ways to hold something, as far as this token may.
 * @param {{place: RuleTarget, rules: Rule[], after: () => void}} props */
export function RuleButtons({ place, rules, after }) {
  const whose = place.space === "schedule" ? null : boundTenant.value;
  const whole = (/** @type {Rule["kind"]} */ kind) => rules.some((rule) => rule.kind === kind && rule.space === place.space && rule.tenant === whose);
  return html`
    ${!whole("pause") && html`<${Button} icon="pause" role=${requiredRole("pause")} onClick=${() => promptForRule("pause", place, after)}>Pause<//>`}
    ${!whole("block") && html`<${Button} icon="block" role=${requiredRole("block")} onClick=${() => promptForRule("block", place, after)}>Block<//>`}`;
}
