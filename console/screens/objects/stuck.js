// Objects whose lanes stand still: their heads failed for good, and somebody has to decide.

import { api } from "../../data/api.js";
import { useFollowed } from "../../data/follow.js";
import { counted } from "../../data/numbers.js";
import { Panel } from "../../parts/facts.js";
import { HandlerLink, KeyLink, TaskLink } from "../../parts/link.js";
import { Shown } from "../../parts/states.js";
import { Table } from "../../parts/table.js";
import { Ago } from "../../parts/time.js";
import { html } from "../../parts/ui.js";
import { go, places } from "../../shell/router.js";
import { whyOf } from "./lanes.js";

/** @typedef {import("../../data/bodies.js").Task} Task */
/** @typedef {import("./lanes.js").Handler} Handler */
/** `still` is how many lanes stand still altogether. @typedef {{eventId: number, still: number, heads: Task[]}} Stuck */

/** Which of the failed tasks hold a lane is asked one by one, so that it is bounded. */
const MOST_HANDLERS = 10;
const MOST_ASKED = 24;
const PAGE = 200;

/** @param {AbortSignal} signal
 * @returns {Promise<Stuck>} */
async function read(signal) {
  const known = /** @type {{eventId: number, handlers: Handler[]}} */ (await api.get("/api/v1/handlers", { signal }));
  const halting = known.handlers.filter((handler) => handler.counts.halted > 0);
  const still = halting.reduce((sum, handler) => sum + handler.counts.halted, 0);
  const pages = await Promise.all(halting.slice(0, MOST_HANDLERS).map((handler) =>
    /** @type {Promise<import("../../data/bodies.js").TaskPage>} */ (api.get("/api/v1/tasks", { query: { handler: handler.name, status: "FAILED", limit: PAGE }, signal }))));
  const candidates = pages.flatMap(({ tasks }) => newestOfEach(tasks)).slice(0, MOST_ASKED);
  const asked = await Promise.all(candidates.map(async (task) => ({ task, why: await whyOf(task.id, signal) })));
  return { eventId: known.eventId, still, heads: asked.filter(({ why }) => why && why.gates.length > 0).map(({ task }) => task) };
}

/** A lane's head is the last of it that failed. @param {Task[]} tasks */
function newestOfEach(tasks) {
  /** @type {Map<string, Task>} */
  const found = new Map();
  for (const task of tasks) {
    const lane = `${task.tenant} ${task.key}`;
    if (task.key !== null && task.state === "error" && !found.has(lane)) found.set(lane, task);
  }
  return [...found.values()];
}

export function Stuck() {
  const stuck = useFollowed({
    read, filter: { tasks: true }, calm: 3000, every: 15_000,
    apply: (data, { tasks }) => (tasks.some(({ status, id }) => status === "FAILED" || data.heads.some((head) => head.id === id)) ? null : data),
  }, []);
  if (stuck.data?.still === 0) return null;
  return html`<${Shown} of=${stuck} lines=${3}>${(/** @type {Stuck} */ { still, heads }) => html`
    <${Panel} title="Halted lanes" flush aside=${heads.length < still ? `${heads.length} of ${still} shown` : counted(still, "lane")}>
      <${Table} label="Halted lanes" keys=${false} columns=${COLUMNS} rows=${heads} id=${(/** @type {Task} */ task) => task.id}
        onOpen=${(/** @type {Task} */ task) => go(places.object(task.key ?? "", task.tenant))} />
    <//>`}<//>`;
}

/** @type {import("../../parts/table.js").Column<Task>[]} */
const COLUMNS = [
  { name: "key", title: "Object", grow: 26, narrow: true, cell: (task) => html`<${KeyLink} of=${task.key ?? ""} tenant=${task.tenant} />` },
  { name: "handler", title: "Handler", grow: 18, narrow: true, cell: (task) => html`<${HandlerLink} name=${task.handler} />` },
  { name: "tenant", title: "Tenant", width: 100, cell: (task) => html`<span class="faint">${task.tenant}</span>` },
  { name: "error", title: "Error", grow: 46, cell: (task) => html`<span class="bad-text" title=${task.error}>${task.error}</span>` },
  { name: "since", title: "Since", width: 96, narrow: true, cell: (task) => html`<${Ago} at=${task.finished_at || task.created_at} />` },
  { name: "id", title: "Task", width: 84, cell: (task) => html`<${TaskLink} id=${task.id} tail />` },
];
