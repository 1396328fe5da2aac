// Filters of the stream, with the meaning of the parameters of `/api/v1/stream`, and the event keys that they match.

/** @typedef {import("./api-types.js").JournalEvent} JournalEvent */
/** @typedef {import("./api-types.js").TaskChange} TaskChange */

/** `types` are types or ancestors of types; `tasks` includes task changes.
 * @typedef {{types?: string[], key?: string, path?: string, tenant?: string, tasks?: boolean}} StreamFilter */

/** Engine event types by their parent type. @type {Record<string, string[]>} */
const ENGINE_EVENT_SUBTYPES = {
  OrderEvent: ["OrderStarted", "OrderFinished", "OrderStepStarted", "OrderStepEnded", "OrderSetBack",
    "OrderNodeChanged", "OrderSuspended", "OrderResumed"],
  JobChainEvent: ["JobChainStateChanged", "JobChainNodeActionChanged"],
  TaskEvent: ["TaskStarted", "TaskEnded", "TaskClosed"],
  FileBasedEvent: ["FileBasedAdded", "FileBasedRemoved", "FileBasedReplaced", "FileBasedActivated"],
  SchedulerEvent: ["SchedulerStateChanged", "SchedulerClosed"],
};

/** The key as text. The key of a TaskEvent is an object.
 * @param {JournalEvent} event */
export function eventKeyText(event) {
  if (event.key === undefined || event.key === null) return null;
  return typeof event.key === "string" ? event.key : JSON.stringify(event.key);
}

/** @param {string} type @param {string} ancestor */
function isTypeOrSubtype(type, ancestor) {
  return ancestor === "Event" || type === ancestor || type.startsWith(`${ancestor}.`) || ENGINE_EVENT_SUBTYPES[ancestor]?.includes(type) === true;
}

/** @param {string} path @param {string | null} key */
function matchesPathFilter(path, key) {
  if (path === "/") return true;
  const keyPath = (key ?? "").replace(/^(Order|Job|JobChain|Schedule):/, "");
  if (path.endsWith("/*")) {
    const folder = path.slice(0, -1);
    return keyPath.startsWith(folder) && !keyPath.slice(folder.length).includes("/");
  }
  if (path.endsWith("/")) return keyPath.startsWith(path);
  return keyPath === path || keyPath.startsWith(`${path},`);
}

/** @param {StreamFilter} filter @param {JournalEvent} event */
export function filterMatchesEvent({ types, key, path, tenant }, event) {
  return (!types?.length || types.some((type) => isTypeOrSubtype(event.TYPE, type)))
    && (key === undefined || eventKeyText(event) === key)
    && (tenant === undefined || event.tenant === undefined || event.tenant === tenant)
    && (path === undefined || matchesPathFilter(path, eventKeyText(event)));
}

/** @param {StreamFilter} filter @param {TaskChange} change */
export function filterMatchesTaskChange({ tasks, key, path, tenant }, change) {
  return tasks === true
    && (key === undefined || change.key === key)
    && (tenant === undefined || change.tenant === tenant)
    && (path === undefined || matchesPathFilter(path, change.key));
}

/** The stream parameters that all filters share: the server filters by them.
 * @param {StreamFilter[]} filters */
export function sharedStreamParameters(filters) {
  /** @param {keyof StreamFilter} name */
  const sharedValue = (name) => {
    const first = filters[0]?.[name];
    const isShared = filters.every((filter) => JSON.stringify(filter[name]) === JSON.stringify(first));
    return isShared ? first : undefined;
  };
  const types = filters.some((filter) => filter.tasks) ? undefined : /** @type {string[] | undefined} */ (sharedValue("types"));
  return {
    return: types?.length ? types.join(",") : undefined,
    key: /** @type {string | undefined} */ (sharedValue("key")),
    path: /** @type {string | undefined} */ (sharedValue("path")),
    tenant: /** @type {string | undefined} */ (sharedValue("tenant")),
  };
}
