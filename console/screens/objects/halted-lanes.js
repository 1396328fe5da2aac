// Objects with halted lanes: a person has to run the failed head again or cancel it.

import { api } from "../../data/api.js";
import { useLiveData } from "../../data/live-data.js";
import { pluralize } from "../../data/numbers.js";
import { Panel } from "../../parts/panel.js";
import { HandlerLink, ObjectOrOrderLink, TaskLink } from "../../parts/link.js";
import { LiveView } from "../../parts/states.js";
import { Table } from "../../parts/table.js";
import { RelativeTime } from "../../parts/time.js";
import { html } from "../../parts/ui.js";
import { navigate, screenPaths } from "../../shell/router.js";
import { readTaskWhy } from "./lanes.js";

/** @typedef {import("../../data/api-types.js").Task} Task */
/** @typedef {import("./lanes.js").Handler} Handler */
/** `haltedCount` counts all halted lanes. @typedef {{eventId: number, haltedCount: number, heads: Task[]}}
 * HaltedLaneData */

/** Each candidate needs a call to find out whether it halts its lane, so they are limited. */
const MAX_QUERIED_HANDLERS = 10;
const MAX_CHECKED_TASKS = 24;
const PAGE_SIZE = 200;

/** @param {AbortSignal} signal
 * @returns {Promise<HaltedLaneData>} */
async function readHaltedLanes(signal) {
  const handlerList = /** @type {{eventId: number, handlers: Handler[]}} */ (await api.get("/api/v1/handlers", { signal }));
  const haltedHandlers = handlerList.handlers.filter((handler) => handler.counts.halted > 0);
  const haltedCount = haltedHandlers.reduce((sum, handler) => sum + handler.counts.halted, 0);
  const pages = await Promise.all(haltedHandlers.slice(0, MAX_QUERIED_HANDLERS).map((handler) =>
    /** @type {Promise<import("../../data/api-types.js").TaskPage>} */ (api.get("/api/v1/tasks", { query: { handler: handler.name, status: "FAILED", limit: PAGE_SIZE }, signal }))));
  const candidates = pages.flatMap(({ tasks }) => newestFailurePerLane(tasks)).slice(0, MAX_CHECKED_TASKS);
  const checked = await Promise.all(candidates.map(async (task) => ({ task, why: await readTaskWhy(task.id, signal) })));
  return { eventId: handlerList.eventId, haltedCount, heads: checked.filter(({ why }) => why && why.gates.length > 0).map(({ task }) => task) };
}

/** The head of a halted lane is its newest failed task. @param {Task[]} tasks */
function newestFailurePerLane(tasks) {
  /** @type {Map<string, Task>} */
  const headsByLane = new Map();
  for (const task of tasks) {
    const lane = `${task.tenant} ${task.key}`;
    if (task.key !== null && task.state === "error" && !headsByLane.has(lane)) headsByLane.set(lane, task);
  }
  return [...headsByLane.values()];
}

export function HaltedLanes() {
  const live = useLiveData({
    read: readHaltedLanes, filter: { tasks: true }, minInterval: 3000, pollInterval: 15_000,
    apply: (data, { tasks }) => (tasks.some(({ status, id }) => status === "FAILED" || data.heads.some((head) => head.id === id)) ? null : data),
  }, []);
  if (live.data?.haltedCount === 0) return null;
  return html`<${LiveView} live=${live} lines=${3}>${(/** @type {HaltedLaneData} */ { haltedCount, heads }) => html`
    <${Panel} title="Halted lanes" flush aside=${heads.length < haltedCount ? `${heads.length} of ${haltedCount} shown` : pluralize(haltedCount, "lane")}>
      <${Table} label="Halted lanes" hasShortcuts=${false} columns=${COLUMNS} rows=${heads} id=${(/** @type {Task} */ task) => task.id}
        onOpen=${(/** @type {Task} */ task) => navigate(screenPaths.object(task.key ?? "", task.tenant))} />
    <//>`}<//>`;
}

/** @type {import("../../parts/table.js").Column<Task>[]} */
const COLUMNS = [
  { name: "key", title: "Object", grow: 26, onSmallScreens: true, cell: (task) => html`<${ObjectOrOrderLink} objectKey=${task.key ?? ""} tenant=${task.tenant} />` },
  { name: "handler", title: "Handler", grow: 18, onSmallScreens: true, cell: (task) => html`<${HandlerLink} name=${task.handler} />` },
  { name: "tenant", title: "Tenant", width: 100, cell: (task) => html`<span class="faint">${task.tenant}</span>` },
  { name: "error", title: "Error", grow: 46, cell: (task) => html`<span class="bad-text" title=${task.error}>${task.error}</span>` },
  { name: "since", title: "Since", width: 96, onSmallScreens: true, cell: (task) => html`<${RelativeTime} at=${task.finished_at || task.created_at} />` },
  { name: "id", title: "Task", width: 84, cell: (task) => html`<${TaskLink} id=${task.id} suffixOnly />` },
];
