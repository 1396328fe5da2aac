// The next firings, a week at a time.

import { api } from "../../data/api.js";
import { useFollowed } from "../../data/follow.js";
import { counted } from "../../data/numbers.js";
import { day, full, millis, now } from "../../data/time.js";
import { Button } from "../../parts/button.js";
import { Icon } from "../../parts/icon.js";
import { Link } from "../../parts/link.js";
import { Empty, Shown } from "../../parts/states.js";
import { Ago } from "../../parts/time.js";
import { classes, html, useState } from "../../parts/ui.js";
import { places, setQuery } from "../../shell/router.js";
import { agenda, clock, ENOUGH } from "./agenda.js";
import { dayName, dayOf, midnights } from "./days.js";
import { upcoming } from "./words.js";

/** @typedef {import("../../data/bodies.js").Schedule} Schedule */
/** @typedef {import("./agenda.js").Day} Day */
/** @typedef {import("./agenda.js").Entry} Entry */

/** How many entries of a day are shown at first. */
const FIRST = 14;
const A_DAY_MS = 86_400_000;

/** @param {number[]} days @param {AbortSignal} signal
 * @returns {Promise<{schedules: Schedule[]}>} */
async function read(days, signal) {
  const after = new Date(Math.max(Date.now(), days[0] - 1)).toISOString();
  const until = new Date(/** @type {number} */ (days.at(-1)) - 1).toISOString();
  /** @type {Schedule[]} */
  const schedules = [];
  /** @type {string | null} */
  let cursor = null;
  do {
    const page = /** @type {{schedules: Schedule[], next: string | null}} */ (
      await api.get("/api/v1/schedules", { query: { times: ENOUGH, after, until, cursor }, signal }));
    schedules.push(...page.schedules);
    cursor = page.next;
  } while (cursor !== null);
  return { schedules };
}

/** @param {{from: string | undefined, wanted: (schedule: Schedule) => boolean}} props `from` is a day, today if not given */
export function Week({ from, wanted }) {
  const today = midnights(now.value, 1)[0];
  const first = dayOf(from) ?? today;
  const days = midnights(Math.max(first, today), 7);
  const week = useFollowed({ read: (signal) => read(days, signal), filter: { types: ["FileBasedEvent"] }, every: 15_000 }, [days[0], days[7]]);
  const before = () => setQuery({ from: day(days[0] - 6.5 * A_DAY_MS) });
  const after = () => setQuery({ from: day(days[7]) });
  return html`<div class="week-head">
      <${Button} small icon="up" class="turn-left" label="Previous week" disabled=${days[0] <= today} onClick=${before} />
      <${Button} small disabled=${days[0] <= today} onClick=${() => setQuery({ from: null })}>Today<//>
      <${Button} small icon="up" class="turn-right" label="Next week" onClick=${after} />
      <h2>${dayName(days[0])} to ${dayName(days[6])}</h2>
    </div>
    <${Shown} of=${week} lines=${10} what="The schedules could not be loaded">
      ${(/** @type {{schedules: Schedule[]}} */ data) => html`<${Grid} schedules=${data.schedules.filter(wanted)} days=${days} today=${today} none=${data.schedules.length === 0} />`}
    <//>`;
}

/** @param {{schedules: Schedule[], days: number[], today: number, none: boolean}} props */
function Grid({ schedules, days: bounds, today, none }) {
  const { often, days } = agenda(schedules, bounds);
  if (schedules.length === 0) return html`<${NoSchedules} none=${none} />`;
  return html`<div class="week">
    ${often.length > 0 && html`<ul class="often" aria-label="Frequent schedules">
      ${often.map((schedule) => html`<li key=${schedule.name} class=${classes(schedule.held && "held")}>
        <${Link} to=${places.schedule(schedule.name)}>${schedule.name}<//>
        <span class="soft">${schedule.words}</span>
        <span class="faint">${schedule.held ? "on hold" : html`next <${Ago} at=${upcoming(schedule)} />`}</span>
        ${schedule.warnings.length > 0 && html`<span class="warn-text" title=${schedule.warnings.join("\n")}><${Icon} name="failure" size=${13} /><span class="unseen">${counted(schedule.warnings.length, "warning")}</span></span>`}
      </li>`)}
    </ul>`}
    <ol class="days">${days.map((one) => html`<${DayColumn} key=${one.from} day=${one} today=${one.from === today} />`)}</ol>
  </div>`;
}

/** @param {{day: Day, today: boolean}} props */
function DayColumn({ day: { from, entries }, today }) {
  const [all, setAll] = useState(false);
  const shown = all ? entries : entries.slice(0, FIRST);
  return html`<li class=${classes("day", today && "today", entries.length === 0 && "empty")} aria-current=${today ? "date" : undefined}>
    <h3>${dayName(from)}${today && html`<span class="tag">today</span>`}</h3>
    ${entries.length === 0 && html`<p class="faint">–</p>`}
    <ul>${shown.map((entry) => html`<li key=${`${entry.schedule.name} ${entry.at}`}><${Firing} entry=${entry} /></li>`)}</ul>
    ${entries.length > shown.length && html`<${Button} small kind="quiet" onClick=${() => setAll(true)}>${counted(entries.length - shown.length, "more", "more")}<//>`}
  </li>`;
}

/** @param {{entry: Entry}} props */
function Firing({ entry: { schedule, at, until, times } }) {
  const told = `${schedule.name}: ${schedule.words} (${schedule.timezone})\n${full(at)}${schedule.held ? "\nPaused or blocked: it will not fire" : ""}`;
  return html`<${Link} to=${places.schedule(schedule.name)} class=${classes("firing", schedule.held && "held", "order" in (schedule.makes ?? {}) ? "makes-order" : "run" in (schedule.makes ?? {}) ? "makes-run" : "makes-event")} title=${told}>
    <time class="number" datetime=${new Date(millis(at) ?? 0).toISOString()}>${clock(at)}${times > 1 ? `–${clock(until)}` : ""}</time>
    <span>${schedule.name}${times > 1 ? html` <span class="faint">${times}×</span>` : ""}</span>${schedule.held && html`<span class="unseen"> on hold</span>`}
  <//>`;
}

/** @param {{none: boolean}} props */
export function NoSchedules({ none }) {
  if (!none) return html`<${Empty} title="No schedule matches" icon="filter"><p>Clear a filter to see more.</p><//>`;
  return html`<${Empty} title="There are no schedules" icon="schedule">
    <p>Define them under <code>schedules:</code> in the configuration, or give a collection of a source a <code>schedule</code>. Changes are loaded within a second.</p><//>`;
}
