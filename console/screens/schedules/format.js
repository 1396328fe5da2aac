// Texts for schedules: their action, and the outcome of a planned time.

import { now } from "../../data/time.js";
import { Badge } from "../../parts/badge.js";
import { ObjectOrOrderLink, Link } from "../../parts/link.js";
import { html } from "../../parts/ui.js";
import { screenPaths } from "../../shell/router.js";

/** @typedef {import("../../data/api-types.js").Schedule} Schedule */
/** @typedef {import("../../data/api-types.js").Fire} Fire */
/** @typedef {import("../../parts/badge.js").Tone} Tone */

/** @type {Record<Fire["outcome"], [Tone, string, string]>} */
export const OUTCOME_LABELS = {
  fired: ["good", "Fired", "Within five seconds of its time"],
  late: ["warn", "Late", "Within a minute of its time: the machine or the store was slow"],
  caught_up: ["busy", "Caught up", "Fired after its time had been missed"],
  skipped: ["off", "Skipped", "It did not fire"],
};

/** Why a time was skipped. @type {Record<string, string>} */
const SKIP_REASON_DESCRIPTIONS = {
  held: "paused or blocked",
  overlap: "the previous run had not ended",
  missed: "no node was running",
  gone: "its source or chain is no longer defined",
};

/** Short labels of the reasons for a skip, for the badge. @type {Record<string, string>} */
const SKIP_REASON_LABELS = { held: "on hold", overlap: "overlap", missed: "missed", gone: "target removed" };

/** @param {Fire} fire */
export function describeOutcome({ outcome, reason }) {
  return reason === null ? OUTCOME_LABELS[outcome][2] : SKIP_REASON_DESCRIPTIONS[reason] ?? reason;
}

/** @param {{fire: Fire}} props */
export function OutcomeBadge({ fire }) {
  const [tone, label] = OUTCOME_LABELS[fire.outcome] ?? ["idle", fire.outcome];
  return html`<${Badge} tone=${tone} title=${describeOutcome(fire)}>${label}${fire.reason ? `: ${SKIP_REASON_LABELS[fire.reason] ?? fire.reason}` : ""}<//>`;
}

/** @param {{schedule: Schedule}} props */
export function ScheduleActionSummary({ schedule: { action } }) {
  if (!action) return html`<span class="faint">–</span>`;
  const { event, run, order } = action;
  if (event) return html`<span class="soft">emits</span> <${Link} to=${screenPaths.stream({ return: event.type })}>${event.type}<//>${event.key !== null && html` <${ObjectOrOrderLink} objectKey=${event.key} tenant=${event.tenant} class="faint" />`}`;
  if (run) return html`<span class="soft">runs</span> <${Link} to=${screenPaths.handler(run.source)}>${run.source}/${run.collection}<//>`;
  if (order) return html`<span class="soft">adds an order to</span> <${Link} to=${screenPaths.chain(order.chain)}>${order.chain}<//>${order.id !== null && html`<span class="faint">,${order.id}</span>`}`;
  return null;
}

/** The next planned time. @param {Schedule} schedule */
export function nextFireTime({ next }) {
  return next.find((at) => Date.parse(at) > now.value) ?? next.at(-1);
}

/** Formats a time in the zone of the schedule; null if the browser does not know the zone.
 * @param {string} at @param {string} timeZone */
export function formatInZone(at, timeZone) {
  try {
    return new Intl.DateTimeFormat("sv-SE", { timeZone, dateStyle: "short", timeStyle: "medium" }).format(new Date(at));
  } catch {
    return null;
  }
}
