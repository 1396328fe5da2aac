// Pauses and blocks on the screen: which hold, who set them and why, setting one, lifting one.

import { hold, lift, mayLift, roleOf } from "../data/rules.js";
import { bound } from "../data/session.js";
import { Badge } from "./badge.js";
import { Button } from "./button.js";
import { ask } from "./dialog.js";
import { attempt } from "./toast.js";
import { Ago } from "./time.js";
import { html } from "./ui.js";

/** @typedef {import("../data/bodies.js").Rule} Rule */
/** @typedef {import("../data/rules.js").Place} Place */

/** @param {{rule: Rule}} props */
export function RuleBadge({ rule: { kind, reason } }) {
  return html`<${Badge} tone=${kind === "block" ? "bad" : "warn"} title=${reason ?? ""}>${kind === "block" ? "Blocked" : "Paused"}<//>`;
}

/** All rules that hold something, each with the way out. `own` is what the screen is about: rules on a part of it say on
 * which.
 * @param {{rules: Rule[], own: Place, after: () => void}} props `after` is called when one was lifted */
export function Rules({ rules, own, after }) {
  if (rules.length === 0) return html`<p class="soft">Not paused or blocked.</p>`;
  return html`<ul class="rules">${rules.map((rule) => html`<li key=${`${rule.kind} ${rule.space} ${rule.name} ${rule.tenant}`}>
    <div class="rule-line"><${RuleBadge} rule=${rule} />
      <span>${of(rule, own)}</span>
      ${mayLift(rule) && html`<${Button} small icon="play" onClick=${() => release(rule, after)}>${rule.kind === "block" ? "Unblock" : "Resume"}<//>`}
    </div>
    <p class="rule-who">${rule.kind === "block" ? "Blocked" : "Paused"}${rule.by ? html` by <b>${rule.by}</b>` : ""} <${Ago} at=${rule.since} /></p>
    ${rule.reason && html`<p class="rule-why">${rule.reason}</p>`}
  </li>`)}</ul>`;
}

/** Whom or what a rule holds. @param {Rule} rule @param {Place} own */
function of({ space, name, tenant }, own) {
  const part = space === own.space ? "" : space === "collection" ? `the collection ${name.slice(name.indexOf("/") + 1)}` : `the ${space} ${name}`;
  const whose = tenant === null ? (space === "schedule" || part ? "" : "for all tenants") : `for the tenant ${tenant}`;
  return [part, whose].filter(Boolean).join(" ");
}

/** @param {Rule} rule @param {() => void} after */
async function release(rule, after) {
  const done = rule.kind === "block" ? "no longer blocked" : "no longer paused";
  if (await attempt(() => lift(rule), `${rule.name} is ${done}`, `${rule.name} was not resumed`)) after();
}

const MEANS = {
  handler: "No new attempts start. Running attempts finish, and new tasks wait.",
  collection: "No new run starts. A running one finishes.",
  schedule: "Planned times pass without firing. After it is resumed, its catch-up policy decides which of them are made up.",
  chain: "No order of this chain starts a step. Running steps finish.",
};

/** Asks for the reason, and holds it.
 * @param {Rule["kind"]} kind @param {Place} place @param {() => void} after @param {string} [tenant] the one it is about */
export async function askHold(kind, place, after, tenant = "") {
  const tenants = place.space !== "schedule" && bound.value === null;
  const word = kind === "block" ? "Block" : "Pause";
  const said = await ask({
    title: `${word} ${place.name}`,
    text: html`<p>${MEANS[place.space]} ${kind === "block" ? "Only an admin can lift a block." : ""}</p>`,
    action: word,
    danger: kind === "block",
    fields: [
      { name: "reason", label: "Reason", hint: "Shown to everybody who can see it." },
      ...(tenants ? [{ name: "tenant", label: "Tenant", value: tenant, hint: "Empty: all tenants." }] : []),
    ],
  });
  if (!said) return;
  const done = `${place.name} is ${kind === "block" ? "blocked" : "paused"}${said.tenant?.trim() ? ` for ${said.tenant.trim()}` : ""}`;
  if (await attempt(() => hold(kind, place, said), done, `${place.name} was not ${kind === "block" ? "blocked" : "paused"}`)) after();
}

/** The ways to hold something, as far as this token may.
 * @param {{place: Place, rules: Rule[], after: () => void}} props */
export function HoldButtons({ place, rules, after }) {
  const whose = place.space === "schedule" ? null : bound.value;
  const whole = (/** @type {Rule["kind"]} */ kind) => rules.some((rule) => rule.kind === kind && rule.space === place.space && rule.tenant === whose);
  return html`
    ${!whole("pause") && html`<${Button} icon="pause" role=${roleOf("pause")} onClick=${() => askHold("pause", place, after)}>Pause<//>`}
    ${!whole("block") && html`<${Button} icon="block" role=${roleOf("block")} onClick=${() => askHold("block", place, after)}>Block<//>`}`;
}
