// The fire ledger: the outcome of each planned time.

import { api, encodeSegment } from "../../data/api.js";
import { usePagedList } from "../../data/paged-list.js";
import { formatDuration } from "../../data/time.js";
import { Panel } from "../../parts/panel.js";
import { EventLink, TaskLink } from "../../parts/link.js";
import { EmptyState, LiveView } from "../../parts/states.js";
import { Table } from "../../parts/table.js";
import { TimeWithDayUnlessToday } from "../../parts/time.js";
import { classNames, html } from "../../parts/ui.js";
import { OutcomeBadge, OUTCOME_LABELS, describeOutcome } from "./format.js";

/** @typedef {import("../../data/api-types.js").Fire} Fire */

/** Maximum fires drawn in the strip. */
const MAX_STRIP_FIRES = 60;

/** @param {{name: string}} props */
export function FireLedger({ name }) {
  const fires = usePagedList({
    read: async (before, signal) => {
      const page = await api.get(`/api/v1/schedules/${encodeSegment(name)}/fires`, { query: { before }, signal });
      return { rows: /** @type {Fire[]} */ (page.fires), next: page.next };
    },
    rowId: (fire) => fire.planned_at,
    pollInterval: 3000,
  }, [name]);
  return html`<${Panel} title="Fires" flush aside=${fires.data && html`<${FireStrip} fires=${fires.data.slice(0, MAX_STRIP_FIRES)} />`}>
    <${LiveView} live=${fires} errorTitle="The ledger could not be loaded">${(/** @type {Fire[]} */ rows) => html`
      <${Table} label="Fires, latest first" columns=${COLUMNS} rows=${rows} id=${(/** @type {Fire} */ fire) => fire.planned_at}
        onEnd=${fires.loadMore ?? undefined}
        empty=${html`<${EmptyState} title="No fires yet" icon="schedule"><p>Every planned time gets a row: fired, late, caught up or skipped.</p><//>`} />`}<//>
  <//>`;
}

/** Recent outcomes as bars, latest on the right. @param {{fires: Fire[]}} props */
function FireStrip({ fires }) {
  if (fires.length === 0) return null;
  const label = Object.entries(OUTCOME_LABELS).map(([outcome, [, outcomeLabel]]) => [outcomeLabel.toLowerCase(), fires.filter((fire) => fire.outcome === outcome).length])
    .filter(([, number]) => number).map(([outcomeLabel, number]) => `${number} ${outcomeLabel}`).join(", ");
  return html`<span class="fire-strip" role="img" aria-label=${`Of the last ${fires.length}: ${label}`} title=${`Of the last ${fires.length}: ${label}`}>
    ${[...fires].reverse().map((fire) => html`<span key=${fire.planned_at} class=${classNames("fire", fire.outcome)}></span>`)}
  </span>`;
}

/** @param {Fire} fire */
function delayCell({ planned_at, decided_at, outcome }) {
  const ms = Date.parse(decided_at) - Date.parse(planned_at);
  return outcome === "skipped" ? "" : html`<span class=${ms > 5000 ? "warn-text" : "faint"}>+${formatDuration(Math.max(0, ms))}</span>`;
}

/** @type {import("../../parts/table.js").Column<Fire>[]} */
const COLUMNS = [
  { name: "planned", title: "Planned", width: 160, onSmallScreens: true, cell: (fire) => html`<${TimeWithDayUnlessToday} at=${fire.planned_at} withMillis=${false} />` },
  { name: "outcome", title: "Outcome", width: 150, onSmallScreens: true, cell: (fire) => html`<${OutcomeBadge} fire=${fire} />` },
  { name: "delay", title: "Delay", width: 84, alignRight: true, cell: delayCell },
  { name: "reason", title: "Reason", grow: 45, cell: (fire) => html`<span class="soft">${fire.outcome === "fired" ? "" : describeOutcome(fire)}</span>` },
  { name: "created", title: "Created", grow: 55, onSmallScreens: true, cell: createdCell },
];

/** @param {Fire} fire */
function createdCell({ event_id, task_id, reason }) {
  if (event_id !== null) return html`<${EventLink} id=${event_id} />`;
  if (task_id !== null) return html`${reason === "overlap" && html`<span class="faint">overlaps with </span>`}<${TaskLink} id=${task_id} short />`;
  return html`<span class="faint">–</span>`;
}
