// The list of schedules, as a week or as a table.

import { api } from "../../data/api.js";
import { useLiveData } from "../../data/live-data.js";
import { Badge } from "../../parts/badge.js";
import { Button } from "../../parts/button.js";
import { cliCommand, CopyAsMenu } from "../../parts/copy.js";
import { ScreenHeader } from "../../parts/panel.js";
import { FilterBar } from "../../parts/filters.js";
import { Link } from "../../parts/link.js";
import { RuleBadge } from "../../parts/rules.js";
import { LiveView } from "../../parts/states.js";
import { Table } from "../../parts/table.js";
import { RelativeTime } from "../../parts/time.js";
import { html } from "../../parts/ui.js";
import { useShortcuts } from "../../shell/shortcuts.js";
import { navigate, screenPaths, setQuery } from "../../shell/router.js";
import { ScheduleActionSummary, OutcomeBadge, nextFireTime } from "./format.js";
import { NoSchedules, WeekView } from "./week.js";

/** @typedef {import("../../data/api-types.js").Schedule} Schedule */

/** @type {[string, string][]} */
const SCHEDULE_STATE_CHOICES = [["held", "Paused or blocked"], ["warned", "With warnings"], ["skipped", "Last fire skipped"]];

/** @param {Record<string, string>} query
 * @returns {(schedule: Schedule) => boolean} */
function buildScheduleFilter({ name = "", state = "" }) {
  const namePart = name.toLowerCase();
  return (schedule) => schedule.name.toLowerCase().includes(namePart)
    && (state !== "held" || schedule.held)
    && (state !== "warned" || schedule.warnings.length > 0)
    && (state !== "skipped" || schedule.last?.outcome === "skipped");
}

/** @param {{query: Record<string, string>}} props */
export default function Schedules({ query }) {
  const isList = query.view === "list";
  const toggleView = () => setQuery({ view: isList ? null : "list" });
  useShortcuts({ v: { title: isList ? "Show the week" : "Show the list", run: toggleView } });
  return html`
    <${ScreenHeader} title="Schedules" subtitle="Planned runs">
      <div class="view-switch" role="group" aria-label="View">
        <${Button} pressed=${!isList} onClick=${() => setQuery({ view: null })}>Week<//>
        <${Button} pressed=${isList} onClick=${() => setQuery({ view: "list" })}>List<//>
      </div>
      <${CopyAsMenu} call=${{ path: "/api/v1/schedules" }} cli=${cliCommand("schedules")} />
    <//>
    <${FilterBar} query=${query} fields=${[
      { name: "name", label: "Name", hint: "part of it", width: 180 },
      { name: "state", label: "State", choices: SCHEDULE_STATE_CHOICES },
    ]} />
    ${isList ? html`<${ScheduleTable} query=${query} />` : html`<${WeekView} from=${query.from} matches=${buildScheduleFilter(query)} />`}`;
}

/** @param {AbortSignal} signal
 * @returns {Promise<{eventId: number, schedules: Schedule[]}>} */
async function readSchedules(signal) {
  const all = await api.get("/api/v1/schedules", { query: { times: 3 }, signal });
  let nextCursor = all.next;
  while (nextCursor !== null) {
    const page = await api.get("/api/v1/schedules", { query: { times: 3, cursor: nextCursor }, signal });
    all.schedules.push(...page.schedules);
    nextCursor = page.next;
  }
  return all;
}

/** @param {{query: Record<string, string>}} props */
function ScheduleTable({ query }) {
  const live = useLiveData({ read: readSchedules, filter: { types: ["FileBasedEvent"] }, pollInterval: 4000 }, []);
  return html`<${LiveView} live=${live} lines=${10} errorTitle="The schedules could not be loaded">
    ${(/** @type {{schedules: Schedule[]}} */ { schedules }) => html`<${Table} fill label="Schedules" columns=${COLUMNS} rows=${schedules.filter(buildScheduleFilter(query))}
      id=${(/** @type {Schedule} */ schedule) => schedule.name} onOpen=${(/** @type {Schedule} */ schedule) => navigate(screenPaths.schedule(schedule.name))}
      empty=${html`<${NoSchedules} isEmpty=${schedules.length === 0} />`} />`}<//>`;
}

/** @type {import("../../parts/table.js").Column<Schedule>[]} */
const COLUMNS = [
  { name: "name", title: "Name", grow: 20, onSmallScreens: true, cell: (schedule) => html`<${Link} to=${screenPaths.schedule(schedule.name)}>${schedule.name}<//>` },
  { name: "state", title: "State", width: 104, onSmallScreens: true, cell: stateCell },
  { name: "description", title: "Schedule", grow: 34, cell: (schedule) => html`<span title=${`${schedule.expression} (${schedule.timezone})`}>${schedule.description} <span class="faint">${schedule.timezone === "UTC" ? "" : schedule.timezone}</span></span>` },
  { name: "action", title: "Creates", grow: 30, cell: (schedule) => html`<${ScheduleActionSummary} schedule=${schedule} />` },
  { name: "last", title: "Last", width: 140, cell: (schedule) => (schedule.last ? html`<${OutcomeBadge} fire=${schedule.last} />` : html`<span class="faint">never</span>`) },
  { name: "next", title: "Next", width: 84, alignRight: true, onSmallScreens: true, cell: (schedule) => html`<${RelativeTime} at=${nextFireTime(schedule)} emptyText="never" />` },
];

/** @param {Schedule} schedule */
function stateCell({ rules, warnings, defined }) {
  if (rules[0]) return html`<${RuleBadge} rule=${rules[0]} />`;
  if (!defined) return html`<${Badge} tone="warn">Removed<//>`;
  if (warnings.length) return html`<${Badge} tone="warn" title=${warnings.join("\n")}>Warning<//>`;
  return html`<${Badge} tone="good">Active<//>`;
}
