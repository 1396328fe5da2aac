// All screens, in the order in which they are offered. One without `load` is not there yet: it is offered nowhere and
// nothing links to it.

/** What a screen's module exports by default.
 * @typedef {(props: {params: Record<string, string>, query: Record<string, string>}) => unknown} ScreenView */

/** @typedef {object} Screen
 * @property {string} name
 * @property {string} path its address; `:name` is a segment, `*name` the rest
 * @property {string} title
 * @property {import("../parts/icon.js").IconName} [icon] shown in the navigation; without one it is reached from others
 * @property {string} [under] the screen that it belongs to, for the navigation and the crumbs
 * @property {string} [words] what one might look for it by
 * @property {import("../data/session.js").Role} [role] needed to see it, if not viewer
 * @property {boolean} [unbound] only for tokens that are bound to no tenant
 * @property {string[]} [styles] style sheets of its own, relative to this folder
 * @property {() => Promise<{default: ScreenView}>} [load]
 */

/** The sheets of what several of them show. */
const RULES_CSS = "../styles/rules.css";
const VALUES_CSS = "../styles/values.css";

/** @type {Screen[]} */
export const screens = [
  { name: "overview", path: "/overview", title: "Overview", icon: "pulse", words: "home throughput latency backlog health",
    styles: ["overview/overview.css"], load: () => import("./overview/screen.js") },
  { name: "stream", path: "/stream", title: "Stream", icon: "stream", words: "events journal live",
    styles: ["stream/stream.css"], load: () => import("./stream/screen.js") },
  { name: "event", path: "/events/:id", title: "Event", under: "stream",
    styles: ["event/event.css", VALUES_CSS], load: () => import("./event/screen.js") },
  { name: "objects", path: "/objects", title: "Objects", icon: "object", words: "key lane head",
    styles: ["objects/objects.css"], load: () => import("./objects/screen.js") },
  { name: "object", path: "/objects/:key", title: "Object", under: "objects",
    styles: ["objects/objects.css"], load: () => import("./objects/object.js") },
  { name: "tasks", path: "/tasks", title: "Tasks", icon: "task", words: "queue retry cancel redrive",
    styles: ["tasks/tasks.css"], load: () => import("./tasks/screen.js") },
  { name: "task", path: "/tasks/:id", title: "Task", under: "tasks",
    styles: ["task/task.css", VALUES_CSS], load: () => import("./task/screen.js") },
  { name: "failures", path: "/failures", title: "Failures", icon: "failure", words: "errors redrive",
    styles: ["failures/failures.css"], load: () => import("./failures/screen.js") },
  { name: "handlers", path: "/handlers", title: "Handlers", icon: "handler", words: "queues sources pause block limits",
    styles: ["handlers/handlers.css", RULES_CSS], load: () => import("./handlers/screen.js") },
  { name: "handler", path: "/handlers/:name", title: "Handler", under: "handlers",
    styles: ["handlers/handlers.css", RULES_CSS], load: () => import("./handlers/handler.js") },
  { name: "schedules", path: "/schedules", title: "Schedules", icon: "schedule", words: "cron calendar week fires",
    styles: ["schedules/schedules.css", RULES_CSS], load: () => import("./schedules/screen.js") },
  { name: "schedule", path: "/schedules/:name", title: "Schedule", under: "schedules",
    styles: ["schedules/schedules.css", RULES_CSS], load: () => import("./schedules/schedule.js") },
  { name: "chains", path: "/chains", title: "Chains", icon: "chain", words: "graph nodes stop",
    styles: ["chains/chains.css", RULES_CSS], load: () => import("./chains/screen.js") },
  { name: "chain", path: "/chains/*path", title: "Chain", under: "chains",
    styles: ["chains/chains.css", RULES_CSS], load: () => import("./chains/chain.js") },
  { name: "orders", path: "/orders", title: "Orders", icon: "order", words: "chains suspend resume",
    styles: ["orders/orders.css"], load: () => import("./orders/screen.js") },
  { name: "order", path: "/orders/*path", title: "Order", under: "orders",
    styles: ["orders/orders.css", VALUES_CSS], load: () => import("./orders/order.js") },
  { name: "nodes", path: "/nodes", title: "Nodes", icon: "node", unbound: true, words: "cluster slots alive",
    styles: ["nodes/nodes.css"], load: () => import("./nodes/screen.js") },
  { name: "configuration", path: "/configuration", title: "Configuration", icon: "configuration", role: "admin", unbound: true,
    words: "reload files faults settings yaml", styles: ["configuration/configuration.css"], load: () => import("./configuration/screen.js") },
  { name: "audit", path: "/audit", title: "Audit", icon: "audit", role: "admin", unbound: true, words: "who changed what",
    load: () => import("./audit/screen.js") },
];

/** @param {string} name */
export function findScreen(name) {
  return screens.find((screen) => screen.name === name && screen.load) ?? null;
}
