// Planned times of a week.

import { api } from "../../data/api.js";
import { useLiveData } from "../../data/live-data.js";
import { pluralize } from "../../data/numbers.js";
import { formatDate, formatDateTime, toMillis, now } from "../../data/time.js";
import { Button } from "../../parts/button.js";
import { Icon } from "../../parts/icon.js";
import { Link } from "../../parts/link.js";
import { EmptyState, LiveView } from "../../parts/states.js";
import { RelativeTime } from "../../parts/time.js";
import { classNames, html, useState } from "../../parts/ui.js";
import { screenPaths, setQuery } from "../../shell/router.js";
import { buildAgenda, formatHourMinute, MIN_FREQUENT_FIRES_PER_WEEK } from "./agenda.js";
import { formatDay, parseDay, listMidnights } from "./days.js";
import { nextFireTime } from "./format.js";

/** @typedef {import("../../data/api-types.js").Schedule} Schedule */
/** @typedef {import("./agenda.js").AgendaDay} AgendaDay */
/** @typedef {import("./agenda.js").AgendaEntry} AgendaEntry */

/** Entries of a day shown at first. */
const MAX_COLLAPSED_ENTRIES = 14;
const DAY_MS = 86_400_000;

/** @param {number[]} midnights @param {AbortSignal} signal
 * @returns {Promise<{schedules: Schedule[]}>} */
async function readWeek(midnights, signal) {
  const after = new Date(Math.max(Date.now(), midnights[0] - 1)).toISOString();
  const until = new Date(/** @type {number} */ (midnights.at(-1)) - 1).toISOString();
  /** @type {Schedule[]} */
  const schedules = [];
  /** @type {string | null} */
  let cursor = null;
  do {
    const page = /** @type {{schedules: Schedule[], next: string | null}} */ (
      await api.get("/api/v1/schedules", { query: { times: MIN_FREQUENT_FIRES_PER_WEEK, after, until, cursor }, signal }));
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
  const midnights = listMidnights(Math.max(firstDay, today), 7);
  const liveWeek = useLiveData({ read: (signal) => readWeek(midnights, signal), filter: { types: ["FileBasedEvent"] }, pollInterval: 15_000 }, [midnights[0], midnights[7]]);
  const showPreviousWeek = () => setQuery({ from: formatDate(midnights[0] - 6.5 * DAY_MS) });
  const showNextWeek = () => setQuery({ from: formatDate(midnights[7]) });
  return html`<div class="week-head">
      <${Button} small icon="up" class="arrow-left" label="Previous week" disabled=${midnights[0] <= today} onClick=${showPreviousWeek} />
      <${Button} small disabled=${midnights[0] <= today} onClick=${() => setQuery({ from: null })}>Today<//>
      <${Button} small icon="up" class="arrow-right" label="Next week" onClick=${showNextWeek} />
      <h2>${formatDay(midnights[0])} to ${formatDay(midnights[6])}</h2>
    </div>
    <${LiveView} live=${liveWeek} lines=${10} errorTitle="The schedules could not be loaded">
      ${(/** @type {{schedules: Schedule[]}} */ data) => html`<${WeekGrid} schedules=${data.schedules.filter(matches)} midnights=${midnights} today=${today} isEmpty=${data.schedules.length === 0} />`}
    <//>`;
}

/** @param {{schedules: Schedule[], midnights: number[], today: number, isEmpty: boolean}} props */
function WeekGrid({ schedules, midnights, today, isEmpty }) {
  const { frequent, days } = buildAgenda(schedules, midnights);
  if (schedules.length === 0) return html`<${NoSchedules} isEmpty=${isEmpty} />`;
  return html`<div class="week">
    ${frequent.length > 0 && html`<ul class="frequent-schedules" aria-label="Frequent schedules">
      ${frequent.map((schedule) => html`<li key=${schedule.name} class=${classNames(schedule.held && "paused")}>
        <${Link} to=${screenPaths.schedule(schedule.name)}>${schedule.name}<//>
        <span class="soft">${schedule.description}</span>
        <span class="faint">${schedule.held ? "on hold" : html`next <${RelativeTime} at=${nextFireTime(schedule)} />`}</span>
        ${schedule.warnings.length > 0 && html`<span class="warn-text" title=${schedule.warnings.join("\n")}><${Icon} name="failure" size=${13} /><span class="visually-hidden">${pluralize(schedule.warnings.length, "warning")}</span></span>`}
      </li>`)}
    </ul>`}
    <ol class="days">${days.map((day) => html`<${DayColumn} key=${day.from} day=${day} isToday=${day.from === today} />`)}</ol>
  </div>`;
}

/** @param {{day: AgendaDay, isToday: boolean}} props */
function DayColumn({ day: { from, entries }, isToday }) {
  const [showAll, setShowAll] = useState(false);
  const visibleEntries = showAll ? entries : entries.slice(0, MAX_COLLAPSED_ENTRIES);
  return html`<li class=${classNames("day", isToday && "today", entries.length === 0 && "empty")} aria-current=${isToday ? "date" : undefined}>
    <h3>${formatDay(from)}${isToday && html`<span class="tag">today</span>`}</h3>
    ${entries.length === 0 && html`<p class="faint">–</p>`}
    <ul>${visibleEntries.map((entry) => html`<li key=${`${entry.schedule.name} ${entry.at}`}><${AgendaEntryLink} entry=${entry} /></li>`)}</ul>
    ${entries.length > visibleEntries.length && html`<${Button} small kind="quiet" onClick=${() => setShowAll(true)}>${pluralize(entries.length - visibleEntries.length, "more", "more")}<//>`}
  </li>`;
}

/** @param {{entry: AgendaEntry}} props */
function AgendaEntryLink({ entry: { schedule, at, until, times } }) {
  const tooltip = `${schedule.name}: ${schedule.description} (${schedule.timezone})\n${formatDateTime(at)}${schedule.held ? "\nPaused or blocked: it will not fire" : ""}`;
  return html`<${Link} to=${screenPaths.schedule(schedule.name)} class=${classNames("agenda-entry", schedule.held && "paused", "order" in (schedule.action ?? {}) ? "creates-order" : "run" in (schedule.action ?? {}) ? "creates-run" : "creates-event")} title=${tooltip}>
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
