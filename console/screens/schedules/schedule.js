// One schedule: expression, action, fires, next fires and rules.

import { api, encodeSegment } from "../../data/api.js";
import { useLiveData } from "../../data/live-data.js";
import { hasRole } from "../../data/session.js";
import { formatDuration } from "../../data/time.js";
import { Badge } from "../../parts/badge.js";
import { Button } from "../../parts/button.js";
import { cliCommand, CopyAsMenu } from "../../parts/copy.js";
import { PropertyList, ScreenHeader, Panel } from "../../parts/panel.js";
import { RuleButtons, RuleBadge, RuleList } from "../../parts/rules.js";
import { Notice, LiveView } from "../../parts/states.js";
import { RelativeTime, TimeWithDayUnlessToday } from "../../parts/time.js";
import { showError, showToast } from "../../parts/toast.js";
import { html } from "../../parts/ui.js";
import { useScreenCommands } from "../../shell/commands.js";
import { FireLedger } from "./ledger.js";
import { formatInZone, ScheduleActionSummary, OutcomeBadge, nextFireTime } from "./format.js";

/** @typedef {import("../../data/api-types.js").Schedule} Schedule */

/** Planned times that are shown. */
const MAX_NEXT_FIRES = 10;

/** @type {Record<string, string>} */
const CATCH_UP_DESCRIPTIONS = { one: "fires once for the latest missed time", all: "fires for every missed time, in order", none: "does not fire for missed times" };
/** @type {Record<string, string>} */
const OVERLAP_DESCRIPTIONS = { queue: "it fires anyway", skip: "it skips the time", cancel: "it cancels them and fires" };

/** @param {{params: Record<string, string>}} props */
export default function ScheduleScreen({ params: { name } }) {
  const path = `/api/v1/schedules/${encodeSegment(name)}`;
  const live = useLiveData({
    read: (signal) => /** @type {Promise<Schedule & {eventId: number}>} */ (api.get(path, { query: { times: MAX_NEXT_FIRES }, signal })),
    filter: { types: ["FileBasedEvent"] },
    pollInterval: 3000,
  }, [name]);
  return html`<${LiveView} live=${live} lines=${10} errorTitle="The schedule could not be loaded">
    ${(/** @type {Schedule} */ schedule) => html`<${ScheduleDetail} schedule=${schedule} path=${path} onChange=${live.reload} />`}<//>`;
}

/** @param {{schedule: Schedule, path: string, onChange: () => void}} props */
function ScheduleDetail({ schedule, path, onChange }) {
  const { name, defined, rules, warnings, description, expression, timezone, last } = schedule;
  const ruleTarget = { space: /** @type {const} */ ("schedule"), name };
  const runNow = () => runSchedule(name, path, onChange);
  const isBlocked = rules.some((rule) => rule.kind === "block") && !hasRole("admin");
  useScreenCommands(hasRole("operator") && defined ? [{ title: `Run ${name} now`, keywords: "fire", run: runNow }] : []);
  return html`
    <${ScreenHeader} title=${name} subtitle=${html`${rules[0] ? html`<${RuleBadge} rule=${rules[0]} />` : html`<${Badge} tone=${defined ? "good" : "warn"}>${defined ? "Active" : "Removed"}<//>`}
      ${schedule.next[0] && html`<span>next fire <${RelativeTime} at=${nextFireTime(schedule)} /></span>`}`}>
      ${defined && html`<${Button} kind="primary" icon="play" role="operator" disabled=${isBlocked}
        title=${isBlocked ? "Blocked by an admin: only admins can run it" : "Fires once, now. This run is not listed under Fires."} onClick=${runNow}>Run now<//>`}
      <${RuleButtons} target=${ruleTarget} rules=${rules} onChange=${onChange} />
      <${CopyAsMenu} call=${{ path }} cli=${cliCommand("schedules", "show", name)} />
    <//>
    ${!defined && html`<${Notice} tone="warn">This schedule is no longer defined. Only its rules are left.<//>`}
    ${warnings.map((warning) => html`<${Notice} key=${warning} tone="warn"><span><b>Warning:</b> ${warning}</span><//>`)}
    <div class="columns">
      <div class="stack">
        ${defined && html`<${Panel} title="Schedule">
          <p class="schedule-description">${description}</p>
          <${PropertyList} items=${[
            ["Expression", html`<code>${expression}</code>`],
            ["Time zone", timezone],
            ["Creates", html`<${ScheduleActionSummary} schedule=${schedule} />`],
            ["Catch-up", schedule.catch_up && html`${schedule.catch_up}<span class="soft">: ${CATCH_UP_DESCRIPTIONS[schedule.catch_up] ?? ""}${schedule.catch_up === "none" ? "" : ` of the last ${formatDuration(schedule.catch_up_within_seconds * 1000)}`}</span>`],
            ["Overlap", schedule.action?.event && schedule.overlap && html`${schedule.overlap}<span class="soft">: if tasks of the previous event are still open, ${OVERLAP_DESCRIPTIONS[schedule.overlap] ?? ""}</span>`],
            ["Jitter", schedule.jitter_seconds > 0 && `random delay of up to ${formatDuration(schedule.jitter_seconds * 1000)}`],
          ]} />
        <//>`}
        <${FireLedger} name=${name} />
      </div>
      <div class="stack">
        <${Panel} title="Pauses and blocks"><${RuleList} rules=${rules} target=${ruleTarget} onChange=${onChange} /><//>
        ${defined && html`<${Panel} title="Next fires"><${NextFires} schedule=${schedule} /><//>`}
        ${last && html`<${Panel} title="Last fire"><${PropertyList} items=${[["Planned", html`<${TimeWithDayUnlessToday} at=${last.planned_at} withMillis=${false} />`], ["Outcome", html`<${OutcomeBadge} fire=${last} />`]]} /><//>`}
      </div>
    </div>`;
}

/** @param {{schedule: Schedule}} props */
function NextFires({ schedule: { next, timezone, held } }) {
  if (next.length === 0) return html`<p class="soft">No more planned times.</p>`;
  return html`${held && html`<p class="warn-text pause-note">While it is paused or blocked, these times pass without firing.</p>`}
    <ol class="next-times">${next.map((at) => html`<li key=${at}><${TimeWithDayUnlessToday} at=${at} withMillis=${false} /><span class="faint"><${RelativeTime} at=${at} /></span>
      ${timezone !== "UTC" && html`<span class="faint schedule-zone" title=${timezone}>${formatInZone(at, timezone)}</span>`}</li>`)}</ol>
    ${timezone !== "UTC" && html`<p class="faint">The second time is in ${timezone}.</p>`}`;
}

/** @param {string} name @param {string} path @param {() => void} onChange */
async function runSchedule(name, path, onChange) {
  try {
    const created = await api.post(`${path}/run`);
    const createdName = created.task_id ?? created.order ?? (created.eventId && `event ${created.eventId}`);
    showToast({ text: created.created ? `${name} was run` : `${name} is queued or running already`, detail: String(createdName ?? "") });
    onChange();
  } catch (error) {
    showError(error, `${name} was not run`);
  }
}
