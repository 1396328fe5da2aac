// All schedules: the week to come, or a list.

import { api } from "../../data/api.js";
import { useFollowed } from "../../data/follow.js";
import { Badge } from "../../parts/badge.js";
import { Button } from "../../parts/button.js";
import { cli, CopyAs } from "../../parts/copy.js";
import { Head } from "../../parts/facts.js";
import { Filters } from "../../parts/filters.js";
import { Link } from "../../parts/link.js";
import { RuleBadge } from "../../parts/rules.js";
import { Shown } from "../../parts/states.js";
import { Table } from "../../parts/table.js";
import { Ago } from "../../parts/time.js";
import { html } from "../../parts/ui.js";
import { useShortcuts } from "../../shell/keys.js";
import { go, places, setQuery } from "../../shell/router.js";
import { Makes, Outcome, upcoming } from "./words.js";
import { NoSchedules, Week } from "./week.js";

/** @typedef {import("../../data/bodies.js").Schedule} Schedule */

/** @type {[string, string][]} */
const STATES = [["held", "Paused or blocked"], ["warned", "With warnings"], ["skipped", "Last fire skipped"]];

/** @param {Record<string, string>} query
 * @returns {(schedule: Schedule) => boolean} */
function wanted({ name = "", state = "" }) {
  const part = name.toLowerCase();
  return (schedule) => schedule.name.toLowerCase().includes(part)
    && (state !== "held" || schedule.held)
    && (state !== "warned" || schedule.warnings.length > 0)
    && (state !== "skipped" || schedule.last?.outcome === "skipped");
}

/** @param {{query: Record<string, string>}} props */
export default function Schedules({ query }) {
  const list = query.view === "list";
  const turn = () => setQuery({ view: list ? null : "list" });
  useShortcuts({ v: { what: list ? "Show the week" : "Show the list", run: turn } });
  return html`
    <${Head} title="Schedules" sub="Planned runs">
      <div class="switch" role="group" aria-label="View">
        <${Button} pressed=${!list} onClick=${() => setQuery({ view: null })}>Week<//>
        <${Button} pressed=${list} onClick=${() => setQuery({ view: "list" })}>List<//>
      </div>
      <${CopyAs} call=${{ path: "/api/v1/schedules" }} cli=${cli("schedules")} />
    <//>
    <${Filters} query=${query} fields=${[
      { name: "name", label: "Name", hint: "part of it", width: 180 },
      { name: "state", label: "State", choices: STATES },
    ]} />
    ${list ? html`<${List} query=${query} />` : html`<${Week} from=${query.from} wanted=${wanted(query)} />`}`;
}

/** @param {AbortSignal} signal
 * @returns {Promise<{eventId: number, schedules: Schedule[]}>} */
async function read(signal) {
  const all = await api.get("/api/v1/schedules", { query: { times: 3 }, signal });
  let next = all.next;
  while (next !== null) {
    const page = await api.get("/api/v1/schedules", { query: { times: 3, cursor: next }, signal });
    all.schedules.push(...page.schedules);
    next = page.next;
  }
  return all;
}

/** @param {{query: Record<string, string>}} props */
function List({ query }) {
  const known = useFollowed({ read, filter: { types: ["FileBasedEvent"] }, every: 4000 }, []);
  return html`<${Shown} of=${known} lines=${10} what="The schedules could not be loaded">
    ${(/** @type {{schedules: Schedule[]}} */ { schedules }) => html`<${Table} tall label="Schedules" columns=${COLUMNS} rows=${schedules.filter(wanted(query))}
      id=${(/** @type {Schedule} */ one) => one.name} onOpen=${(/** @type {Schedule} */ one) => go(places.schedule(one.name))}
      empty=${html`<${NoSchedules} none=${schedules.length === 0} />`} />`}<//>`;
}

/** @type {import("../../parts/table.js").Column<Schedule>[]} */
const COLUMNS = [
  { name: "name", title: "Name", grow: 20, narrow: true, cell: (one) => html`<${Link} to=${places.schedule(one.name)}>${one.name}<//>` },
  { name: "state", title: "State", width: 104, narrow: true, cell: state },
  { name: "words", title: "Schedule", grow: 34, cell: (one) => html`<span title=${`${one.expression} (${one.timezone})`}>${one.words} <span class="faint">${one.timezone === "UTC" ? "" : one.timezone}</span></span>` },
  { name: "makes", title: "Creates", grow: 30, cell: (one) => html`<${Makes} schedule=${one} />` },
  { name: "last", title: "Last", width: 140, cell: (one) => (one.last ? html`<${Outcome} fire=${one.last} />` : html`<span class="faint">never</span>`) },
  { name: "next", title: "Next", width: 84, right: true, narrow: true, cell: (one) => html`<${Ago} at=${upcoming(one)} none="never" />` },
];

/** @param {Schedule} one */
function state({ rules, warnings, defined }) {
  if (rules[0]) return html`<${RuleBadge} rule=${rules[0]} />`;
  if (!defined) return html`<${Badge} tone="warn">Removed<//>`;
  if (warnings.length) return html`<${Badge} tone="warn" title=${warnings.join("\n")}>Warning<//>`;
  return html`<${Badge} tone="good">Active<//>`;
}
