// Planned times of a week.

import { api } from "../../data/api.js";
import { useLiveData } from "../../data/live-data.js";
import { pluralize } from "../../data/numbers.js";
import { formatDate, formatDateTime, toMillis, now } from "../../data/time.js";
import { Button } from "../../parts/button.js";
import { Icon } from "../../parts/icon.js";
import { Link } from "../../parts/link.js";
import { EmptyState, LiveView } from "../../parts/states.js";
import { Ago } from "../../parts/time.js";
import { classNames, html, useState } from "../../parts/ui.js";
import { screenPaths, setQuery } from "../../shell/router.js";
import { buildAgenda, formatHourMinute, FREQUENT_FIRES_PER_WEEK } from "./agenda.js";
import { formatDay, parseDay, listMidnights } from "./days.js";
import { nextFire } from "./format.js";

/** @typedef {import("../../data/api-types.js").Schedule} Schedule */
/** @typedef {import("./agenda.js").AgendaDay} AgendaDay */
/** @typedef {import("./agenda.js").AgendaEntry} AgendaEntry */

/** Entries of a day shown at first. */
const FIRST_ENTRIES = 14;
const DAY_MS = 86_400_000;

/** @param {number[]} days @param {AbortSignal} signal
 * @returns {Promise<{schedules: Schedule[]}>} */
async function readWeek(days, signal) {
  const after = new Date(Math.max(Date.now(), days[0] - 1)).toISOString();
  const until = new Date(/** @type {number} */ (days.at(-1)) - 1).toISOString();
  /** @type {Schedule[]} */
  const schedules = [];
  /** @type {string | null} */
  let cursor = null;
  do {
    const page = /** @type {{schedules: Schedule[], next: string | null}} */ (
      await api.get("/api/v1/schedules", { query: { times: FREQUENT_FIRES_PER_WEEK, after, until, cursor }, signal }));
    schedules.push(...page.schedules);
    cursor = page.next;
  } while (cursor !== null);
  return { schedules };
}

/** @param {{from: string | undefined, matches: (schedule: Schedule) => boolean}} props `from` is the first day, today
 * by default */
export function WeekView({ from, matches }) {
  const today = listMidnights(now.value, 1)[0];
  const firstDay = parseDay(from) ?? today;
  const days = listMidnights(Math.max(firstDay, today), 7);
  const week = useLiveData({ read: (signal) => readWeek(days, signal), filter: { types: ["FileBasedEvent"] }, pollInterval: 15_000 }, [days[0], days[7]]);
  const showPreviousWeek = () => setQuery({ from: formatDate(days[0] - 6.5 * DAY_MS) });
  const showNextWeek = () => setQuery({ from: formatDate(days[7]) });
  return html`<div class="week-head">
      <${Button} small icon="up" class="arrow-left" label="Previous week" disabled=${days[0] <= today} onClick=${showPreviousWeek} />
      <${Button} small disabled=${days[0] <= today} onClick=${() => setQuery({ from: null })}>Today<//>
      <${Button} small icon="up" class="arrow-right" label="Next week" onClick=${showNextWeek} />
      <h2>${formatDay(days[0])} to ${formatDay(days[6])}</h2>
    </div>
    <${LiveView} data=${week} lines=${10} errorTitle="The schedules could not be loaded">
      ${(/** @type {{schedules: Schedule[]}} */ data) => html`<${WeekGrid} schedules=${data.schedules.filter(matches)} days=${days} today=${today} isEmpty=${data.schedules.length === 0} />`}
    <//>`;
}

/** @param {{schedules: Schedule[], days: number[], today: number, isEmpty: boolean}} props */
function WeekGrid({ schedules, days: bounds, today, isEmpty }) {
  const { frequent, days } = buildAgenda(schedules, bounds);
  if (schedules.length === 0) return html`<${NoSchedules} isEmpty=${isEmpty} />`;
  return html`<div class="week">
    ${frequent.length > 0 && html`<ul class="frequent-schedules" aria-label="Frequent schedules">
      ${frequent.map((schedule) => html`<li key=${schedule.name} class=${classNames(schedule.held && "paused")}>
        <${Link} to=${screenPaths.schedule(schedule.name)}>${schedule.name}<//>
        <span class="soft">${schedule.words}</span>
        <span class="faint">${schedule.held ? "on hold" : html`next <${Ago} at=${nextFire(schedule)} />`}</span>
        ${schedule.warnings.length > 0 && html`<span class="warn-text" title=${schedule.warnings.join("\n")}><${Icon} name="failure" size=${13} /><span class="visually-hidden">${pluralize(schedule.warnings.length, "warning")}</span></span>`}
      </li>`)}
    </ul>`}
    <ol class="days">${days.map((one) => html`<${DayColumn} key=${one.from} day=${one} today=${one.from === today} />`)}</ol>
  </div>`;
}

/** @param {{day: AgendaDay, today: boolean}} props */
function DayColumn({ day: { from, entries }, today }) {
  const [all, setAll] = useState(false);
  const visibleEntries = all ? entries : entries.slice(0, FIRST_ENTRIES);
  return html`<li class=${classNames("day", today && "today", entries.length === 0 && "empty")} aria-current=${today ? "date" : undefined}>
    <h3>${formatDay(from)}${today && html`<span class="tag">today</span>`}</h3>
    ${entries.length === 0 && html`<p class="faint">–</p>`}
    <ul>${visibleEntries.map((entry) => html`<li key=${`${entry.schedule.name} ${entry.at}`}><${AgendaEntryLink} entry=${entry} /></li>`)}</ul>
    ${entries.length > visibleEntries.length && html`<${Button} small kind="quiet" onClick=${() => setAll(true)}>${pluralize(entries.length - visibleEntries.length, "more", "more")}<//>`}
  </li>`;
}

/** @param {{entry: AgendaEntry}} props */
function AgendaEntryLink({ entry: { schedule, at, until, times } }) {
  const tooltip = `${schedule.name}: ${schedule.words} (${schedule.timezone})\n${formatDateTime(at)}${schedule.held ? "\nPaused or blocked: it will not fire" : ""}`;
  return html`<${Link} to=${screenPaths.schedule(schedule.name)} class=${classNames("agenda-entry", schedule.held && "paused", "order" in (schedule.makes ?? {}) ? "makes-order" : "run" in (schedule.makes ?? {}) ? "makes-run" : "makes-event")} title=${tooltip}>
    <time class="number" datetime=${new Date(toMillis(at) ?? 0).toISOString()}>${formatHourMinute(at)}${times > 1 ? `–${formatHourMinute(until)}` : ""}</time>
    <span>${schedule.name}${times > 1 ? html` <span class="faint">${times}×</span>` : ""}</span>${schedule.held && html`<span class="visually-hidden"> on hold</span>`}
  <//>`;
}

/** @param {{isEmpty: boolean}} props */
export function NoSchedules({ isEmpty }) {
  if (!isEmpty) return html`<${EmptyState} title="No schedule matches" icon="filter"><p>Clear a filter to see more.</p><//>`;
  return html`<${EmptyState} title="There are no schedules" icon="schedule">
    <p>Define them under <code>schedules:</code> in the configuration, or give a collection of a source a <code>schedule</code>. Changes are loaded within a second.</p><//>`;
}
