// One schedule: when it fires and what that means, what it makes, what became of its times, what holds it.

import { api, segment } from "../../data/api.js";
import { useFollowed } from "../../data/follow.js";
import { may } from "../../data/session.js";
import { duration } from "../../data/time.js";
import { Badge } from "../../parts/badge.js";
import { Button } from "../../parts/button.js";
import { cli, CopyAs } from "../../parts/copy.js";
import { Facts, Head, Panel } from "../../parts/facts.js";
import { HoldButtons, RuleBadge, Rules } from "../../parts/rules.js";
import { Notice, Shown } from "../../parts/states.js";
import { Ago, Clock } from "../../parts/time.js";
import { tellError, toast } from "../../parts/toast.js";
import { html } from "../../parts/ui.js";
import { useCommands } from "../../shell/commands.js";
import { Ledger } from "./ledger.js";
import { inZone, Makes, Outcome, upcoming } from "./words.js";

/** @typedef {import("../../data/bodies.js").Schedule} Schedule */

/** How many coming times are shown. */
const NEXT = 10;

/** @type {Record<string, string>} */
const CATCH_UP = { one: "fires once for the latest missed time", all: "fires for every missed time, in order", none: "does not fire for missed times" };
/** @type {Record<string, string>} */
const OVERLAP = { queue: "it fires anyway", skip: "it skips the time", cancel: "it cancels them and fires" };

/** @param {{params: Record<string, string>}} props */
export default function Screen({ params: { name } }) {
  const path = `/api/v1/schedules/${segment(name)}`;
  const known = useFollowed({
    read: (signal) => /** @type {Promise<Schedule & {eventId: number}>} */ (api.get(path, { query: { times: NEXT }, signal })),
    filter: { types: ["FileBasedEvent"] },
    every: 3000,
  }, [name]);
  return html`<${Shown} of=${known} lines=${10} what="The schedule could not be loaded">
    ${(/** @type {Schedule} */ schedule) => html`<${Detail} schedule=${schedule} path=${path} after=${known.reload} />`}<//>`;
}

/** @param {{schedule: Schedule, path: string, after: () => void}} props */
function Detail({ schedule, path, after }) {
  const { name, defined, rules, warnings, words, expression, timezone, last } = schedule;
  const place = { space: /** @type {const} */ ("schedule"), name };
  const run = () => runNow(name, path, after);
  const blocked = rules.some((rule) => rule.kind === "block") && !may("admin");
  useCommands(may("operator") && defined ? [{ title: `Run ${name} now`, words: "fire", run }] : []);
  return html`
    <${Head} title=${name} sub=${html`${rules[0] ? html`<${RuleBadge} rule=${rules[0]} />` : html`<${Badge} tone=${defined ? "good" : "warn"}>${defined ? "Active" : "Removed"}<//>`}
      ${schedule.next[0] && html`<span>next fire <${Ago} at=${upcoming(schedule)} /></span>`}`}>
      ${defined && html`<${Button} kind="primary" icon="play" role="operator" disabled=${blocked}
        title=${blocked ? "Blocked by an admin: only admins can run it" : "Fires once, now. This run is not listed under Fires."} onClick=${run}>Run now<//>`}
      <${HoldButtons} place=${place} rules=${rules} after=${after} />
      <${CopyAs} call=${{ path }} cli=${cli("schedules", "show", name)} />
    <//>
    ${!defined && html`<${Notice} tone="warn">This schedule is no longer defined. Only its rules are left.<//>`}
    ${warnings.map((warning) => html`<${Notice} key=${warning} tone="warn"><span><b>Warning:</b> ${warning}</span><//>`)}
    <div class="columns">
      <div class="stack">
        ${defined && html`<${Panel} title="Schedule">
          <p class="in-words">${words}</p>
          <${Facts} of=${[
            ["Expression", html`<code>${expression}</code>`],
            ["Time zone", timezone],
            ["Creates", html`<${Makes} schedule=${schedule} />`],
            ["Catch-up", schedule.catch_up && html`${schedule.catch_up}<span class="soft">: ${CATCH_UP[schedule.catch_up] ?? ""}${schedule.catch_up === "none" ? "" : ` of the last ${duration(schedule.catch_up_within_seconds * 1000)}`}</span>`],
            ["Overlap", schedule.makes?.event && schedule.overlap && html`${schedule.overlap}<span class="soft">: if tasks of the previous event are still open, ${OVERLAP[schedule.overlap] ?? ""}</span>`],
            ["Jitter", schedule.jitter_seconds > 0 && `random delay of up to ${duration(schedule.jitter_seconds * 1000)}`],
          ]} />
        <//>`}
        <${Ledger} name=${name} />
      </div>
      <div class="stack">
        <${Panel} title="Pauses and blocks"><${Rules} rules=${rules} own=${place} after=${after} /><//>
        ${defined && html`<${Panel} title="Next fires"><${Next} schedule=${schedule} /><//>`}
        ${last && html`<${Panel} title="Last fire"><${Facts} of=${[["Planned", html`<${Clock} at=${last.planned_at} fine=${false} />`], ["Outcome", html`<${Outcome} fire=${last} />`]]} /><//>`}
      </div>
    </div>`;
}

/** @param {{schedule: Schedule}} props */
function Next({ schedule: { next, timezone, held } }) {
  if (next.length === 0) return html`<p class="soft">No more planned times.</p>`;
  return html`${held && html`<p class="warn-text held-note">While it is paused or blocked, these times pass without firing.</p>`}
    <ol class="next-times">${next.map((at) => html`<li key=${at}><${Clock} at=${at} fine=${false} /><span class="faint"><${Ago} at=${at} /></span>
      ${timezone !== "UTC" && html`<span class="faint own-zone" title=${timezone}>${inZone(at, timezone)}</span>`}</li>`)}</ol>
    ${timezone !== "UTC" && html`<p class="faint">The second time is in ${timezone}.</p>`}`;
}

/** @param {string} name @param {string} path @param {() => void} after */
async function runNow(name, path, after) {
  try {
    const made = await api.post(`${path}/run`);
    const what = made.task_id ?? made.order ?? (made.eventId && `event ${made.eventId}`);
    toast({ text: made.created ? `${name} was run` : `${name} is queued or running already`, detail: String(what ?? "") });
    after();
  } catch (error) {
    tellError(error, `${name} was not run`);
  }
}
