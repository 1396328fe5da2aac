// All screens, in navigation order. A screen without `load` does not exist yet: it is not listed or linked.

/** The default export of the module of a screen.
 * @typedef {(props: {params: Record<string, string>, query: Record<string, string>}) => unknown} ScreenView */

/** @typedef {object} Screen
 * @property {string} name
 * @property {string} path its address; `:name` is a segment, `*name` the rest
 * @property {string} title
 * @property {import("../parts/icon.js").IconName} [icon] shown in the navigation; a screen without one is reached by
 * links
 * @property {string} [parent] its parent in the navigation and the breadcrumbs
 * @property {string} [keywords] search words of the palette
 * @property {import("../data/session.js").Role} [role] needed to see it, if not viewer
 * @property {boolean} [needsAllTenants] only for tokens that are not limited to one tenant
 * @property {string[]} [styles] style sheets of its own, relative to this folder
 * @property {() => Promise<{default: ScreenView}>} [load]
 */

/** Style sheets shared by several screens. */
const RULES_CSS = "../styles/rules.css";
const VALUES_CSS = "../styles/values.css";
const REDRIVE_CSS = ["../styles/progress.css", "../styles/dialog.css"];

/** @type {Screen[]} */
export const screens = [
  { name: "overview", path: "/overview", title: "Overview", icon: "pulse", keywords: "home throughput latency backlog health",
    styles: ["overview/overview.css"], load: () => import("./overview/screen.js") },
  { name: "stream", path: "/stream", title: "Stream", icon: "stream", keywords: "events journal live",
    styles: ["stream/stream.css"], load: () => import("./stream/screen.js") },
  { name: "event", path: "/events/:id", title: "Event", parent: "stream",
    styles: ["event/event.css", VALUES_CSS], load: () => import("./event/screen.js") },
  { name: "objects", path: "/objects", title: "Objects", icon: "object", keywords: "key lane head",
    styles: ["objects/objects.css"], load: () => import("./objects/screen.js") },
  { name: "object", path: "/objects/:key", title: "Object", parent: "objects",
    styles: ["objects/objects.css"], load: () => import("./objects/object.js") },
  { name: "tasks", path: "/tasks", title: "Tasks", icon: "task", keywords: "queue retry cancel redrive",
    styles: ["tasks/tasks.css", ...REDRIVE_CSS], load: () => import("./tasks/screen.js") },
  { name: "task", path: "/tasks/:id", title: "Task", parent: "tasks",
    styles: ["task/task.css", VALUES_CSS], load: () => import("./task/screen.js") },
  { name: "failures", path: "/failures", title: "Failures", icon: "failure", keywords: "errors redrive",
    styles: ["failures/failures.css", ...REDRIVE_CSS], load: () => import("./failures/screen.js") },
  { name: "handlers", path: "/handlers", title: "Handlers", icon: "handler", keywords: "queues sources pause block limits",
    styles: ["handlers/handlers.css", RULES_CSS], load: () => import("./handlers/screen.js") },
  { name: "handler", path: "/handlers/:name", title: "Handler", parent: "handlers",
    styles: ["handlers/handlers.css", RULES_CSS], load: () => import("./handlers/handler.js") },
  { name: "schedules", path: "/schedules", title: "Schedules", icon: "schedule", keywords: "cron calendar week fires",
    styles: ["schedules/schedules.css", RULES_CSS], load: () => import("./schedules/screen.js") },
  { name: "schedule", path: "/schedules/:name", title: "Schedule", parent: "schedules",
    styles: ["schedules/schedules.css", RULES_CSS], load: () => import("./schedules/schedule.js") },
  { name: "chains", path: "/chains", title: "Chains", icon: "chain", keywords: "graph nodes stop",
    styles: ["chains/chains.css", RULES_CSS], load: () => import("./chains/screen.js") },
  { name: "chain", path: "/chains/*path", title: "Chain", parent: "chains",
    styles: ["chains/chains.css", RULES_CSS], load: () => import("./chains/chain.js") },
  { name: "orders", path: "/orders", title: "Orders", icon: "order", keywords: "chains suspend resume",
    styles: ["orders/orders.css"], load: () => import("./orders/screen.js") },
  { name: "order", path: "/orders/*path", title: "Order", parent: "orders",
    styles: ["orders/orders.css", VALUES_CSS], load: () => import("./orders/order.js") },
  { name: "nodes", path: "/nodes", title: "Nodes", icon: "node", needsAllTenants: true, keywords: "cluster slots alive",
    styles: ["nodes/nodes.css"], load: () => import("./nodes/screen.js") },
  { name: "configuration", path: "/configuration", title: "Configuration", icon: "configuration", role: "admin", needsAllTenants: true,
    keywords: "reload files faults settings yaml", styles: ["configuration/configuration.css"], load: () => import("./configuration/screen.js") },
  { name: "audit", path: "/audit", title: "Audit", icon: "audit", role: "admin", needsAllTenants: true, keywords: "who changed what",
    load: () => import("./audit/screen.js") },
];

/** @param {string} name */
export function findScreen(name) {
  return screens.find((screen) => screen.name === name && screen.load) ?? null;
}
