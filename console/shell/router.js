// Addresses of screens are hashes, `#/tasks?status=FAILED`, since `/tasks` itself is a call of the API.

import { computed, signal } from "../vendor/signals.js";
import { screens } from "../screens/registry.js";

/** @typedef {import("../screens/registry.js").Screen} Screen */
/** @typedef {{screen: Screen | null, path: string, params: Record<string, string>, query: Record<string, string>}} Route */

const locationHash = signal(location.hash);
addEventListener("hashchange", () => {
  locationHash.value = location.hash;
});

/** Where we are. @type {import("../vendor/signals.js").ReadonlySignal<Route>} */
export const currentRoute = computed(() => parseRoute(locationHash.value));

/** @param {string} text
 * @returns {Route} */
export function parseRoute(text) {
  const [rawPath, rawQuery = ""] = text.replace(/^#/, "").split(/\?(.*)/s);
  const path = rawPath || "/overview";
  const query = Object.fromEntries(new URLSearchParams(rawQuery));
  for (const screen of screens) {
    if (!screen.load) continue;
    const params = matchPattern(screen.path, path);
    if (params) return { screen, path, params, query };
  }
  return { screen: path === "/" ? screens[0] : null, path, params: {}, query };
}

/** `:name` is a segment, `*name` the rest, without the slash before it.
 * @param {string} pattern @param {string} path */
function matchPattern(pattern, path) {
  /** @type {string[]} */
  const names = [];
  const source = pattern.replace(/[.+?^${}()|[\]\\]/g, "\\$&").replace(/([:*])(\w+)/g, (_, kind, name) => {
    names.push(name);
    return kind === ":" ? "([^/]+)" : "(.+)";
  });
  const found = new RegExp(`^${source}$`).exec(path);
  if (!found) return null;
  try {
    return Object.fromEntries(names.map((name, index) => [name, decodeURIComponent(found[index + 1])]));
  } catch {
    return null;
  }
}

/** Whether a screen for this address is there.
 * @param {string} to */
export function screenExists(to) {
  return parseRoute(`#${to}`).screen !== null;
}

/** @param {string} to @param {{replace?: boolean}} [how] */
export function navigate(to, { replace = false } = {}) {
  if (replace) history.replaceState(history.state, "", `#${to}`);
  else history.pushState(null, "", `#${to}`);
  locationHash.value = `#${to}`;
}

addEventListener("popstate", () => {
  locationHash.value = location.hash;
});

/** An address with a query. What is empty is left out.
 * @param {string} path @param {Record<string, string | number | null | undefined>} [query] */
export function withQuery(path, query = {}) {
  const given = Object.entries(query).filter(([, value]) => value !== null && value !== undefined && value !== "");
  const text = new URLSearchParams(given.map(([name, value]) => [name, String(value)])).toString();
  return text ? `${path}?${text}` : path;
}

/** Changes a part of the query and stays on the screen. Typing in a filter makes no steps to go back over.
 * @param {Record<string, string | number | null | undefined>} change @param {{replace?: boolean}} [how] */
export function setQuery(change, { replace = true } = {}) {
  const { path, query } = currentRoute.value;
  navigate(withQuery(path, { ...query, ...change }), { replace });
}

/** The addresses of what the API tells of. */
export const screenPaths = {
  /** @param {number | string} id */
  event: (id) => `/events/${id}`,
  /** @param {string} key @param {string} [tenant] */
  object: (key, tenant) => withQuery(`/objects/${encodeURIComponent(key)}`, { tenant: tenant === "default" ? "" : tenant }),
  /** @param {string} id */
  task: (id) => `/tasks/${encodeURIComponent(id)}`,
  /** @param {Record<string, string | number | null | undefined>} query */
  tasks: (query) => withQuery("/tasks", query),
  /** @param {string} name */
  handler: (name) => `/handlers/${encodeURIComponent(name)}`,
  /** @param {string} name */
  schedule: (name) => `/schedules/${encodeURIComponent(name)}`,
  /** @param {string} path with its leading slash */
  chain: (path) => `/chains${path}`,
  /** @param {string} path with its leading slash @param {string} [tenant] */
  order: (path, tenant) => withQuery(`/orders${path}`, { tenant: tenant === "default" ? "" : tenant }),
  /** @param {Record<string, string | number | null | undefined>} query */
  stream: (query) => withQuery("/stream", query),
};
