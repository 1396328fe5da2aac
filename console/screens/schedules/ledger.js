// The ledger: what became of each planned time.

import { api, segment } from "../../data/api.js";
import { usePages } from "../../data/pages.js";
import { duration } from "../../data/time.js";
import { Panel } from "../../parts/facts.js";
import { EventLink, TaskLink } from "../../parts/link.js";
import { Empty, Shown } from "../../parts/states.js";
import { Table } from "../../parts/table.js";
import { Clock } from "../../parts/time.js";
import { classes, html } from "../../parts/ui.js";
import { Outcome, OUTCOMES, why } from "./words.js";

/** @typedef {import("../../data/bodies.js").Fire} Fire */

/** How many are drawn as a strip. */
const STRIP = 60;

/** @param {{name: string}} props */
export function Ledger({ name }) {
  const fires = usePages({
    read: async (before, signal) => {
      const page = await api.get(`/api/v1/schedules/${segment(name)}/fires`, { query: { before }, signal });
      return { rows: /** @type {Fire[]} */ (page.fires), next: page.next };
    },
    id: (fire) => fire.planned_at,
    every: 3000,
  }, [name]);
  return html`<${Panel} title="Fires" flush aside=${fires.data && html`<${Strip} fires=${fires.data.slice(0, STRIP)} />`}>
    <${Shown} of=${fires} what="The ledger could not be loaded">${(/** @type {Fire[]} */ rows) => html`
      <${Table} label="Fires, latest first" columns=${COLUMNS} rows=${rows} id=${(/** @type {Fire} */ fire) => fire.planned_at}
        onEnd=${fires.more ?? undefined}
        empty=${html`<${Empty} title="No fires yet" icon="schedule"><p>Every planned time gets a row: fired, late, caught up or skipped.</p><//>`} />`}<//>
  <//>`;
}

/** The outcomes at a glance, the latest on the right. @param {{fires: Fire[]}} props */
function Strip({ fires }) {
  if (fires.length === 0) return null;
  const words = Object.entries(OUTCOMES).map(([outcome, [, word]]) => [word.toLowerCase(), fires.filter((fire) => fire.outcome === outcome).length])
    .filter(([, number]) => number).map(([word, number]) => `${number} ${word}`).join(", ");
  return html`<span class="strip" role="img" aria-label=${`Of the last ${fires.length}: ${words}`} title=${`Of the last ${fires.length}: ${words}`}>
    ${[...fires].reverse().map((fire) => html`<span key=${fire.planned_at} class=${classes("fire", fire.outcome)}></span>`)}
  </span>`;
}

/** @param {Fire} fire */
function delay({ planned_at, settled_at, outcome }) {
  const ms = Date.parse(settled_at) - Date.parse(planned_at);
  return outcome === "skipped" ? "" : html`<span class=${ms > 5000 ? "warn-text" : "faint"}>+${duration(Math.max(0, ms))}</span>`;
}

/** @type {import("../../parts/table.js").Column<Fire>[]} */
const COLUMNS = [
  { name: "planned", title: "Planned", width: 160, narrow: true, cell: (fire) => html`<${Clock} at=${fire.planned_at} fine=${false} />` },
  { name: "outcome", title: "Outcome", width: 150, narrow: true, cell: (fire) => html`<${Outcome} fire=${fire} />` },
  { name: "delay", title: "Delay", width: 84, right: true, cell: delay },
  { name: "why", title: "Reason", grow: 45, cell: (fire) => html`<span class="soft">${fire.outcome === "fired" ? "" : why(fire)}</span>` },
  { name: "made", title: "Created", grow: 55, narrow: true, cell: made },
];

/** @param {Fire} fire */
function made({ event_id, task_id, reason }) {
  if (event_id !== null) return html`<${EventLink} id=${event_id} />`;
  if (task_id !== null) return html`${reason === "overlap" && html`<span class="faint">overlaps with </span>`}<${TaskLink} id=${task_id} short />`;
  return html`<span class="faint">–</span>`;
}
