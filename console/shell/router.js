// The router. Addresses of screens are hashes, `#/tasks?status=FAILED`, since `/tasks` is an API call.

import { computed, signal } from "../vendor/signals.js";
import { addQuery } from "../data/api.js";
import { screens } from "../screens/registry.js";

/** @typedef {import("../screens/registry.js").Screen} Screen */
/** @typedef {{screen: Screen | null, path: string, params: Record<string, string>, query: Record<string, string>}}
 * Route */

const locationHash = signal(location.hash);
addEventListener("hashchange", () => {
  locationHash.value = location.hash;
});

/** The current route. @type {import("../vendor/signals.js").ReadonlySignal<Route>} */
export const currentRoute = computed(() => parseRoute(locationHash.value));

/** @param {string} hash
 * @returns {Route} */
export function parseRoute(hash) {
  const [rawPath, rawQuery = ""] = hash.replace(/^#/, "").split(/\?(.*)/s);
  const path = rawPath || "/overview";
  const query = Object.fromEntries(new URLSearchParams(rawQuery));
  for (const screen of screens) {
    if (!screen.load) continue;
    const params = matchPathPattern(screen.path, path);
    if (params) return { screen, path, params, query };
  }
  return { screen: path === "/" ? screens[0] : null, path, params: {}, query };
}

/** Matches a path. `:name` is a segment, `*name` the rest without its leading slash.
 * @param {string} pattern @param {string} path */
function matchPathPattern(pattern, path) {
  /** @type {string[]} */
  const names = [];
  const source = pattern.replace(/[.+?^${}()|[\]\\]/g, "\\$&").replace(/([:*])(\w+)/g, (_, kind, name) => {
    names.push(name);
    return kind === ":" ? "([^/]+)" : "(.+)";
  });
  const match = new RegExp(`^${source}$`).exec(path);
  if (!match) return null;
  try {
    return Object.fromEntries(names.map((name, index) => [name, decodeURIComponent(match[index + 1])]));
  } catch {
    return null;
  }
}

/** Whether a screen has this address.
 * @param {string} to */
export function screenExists(to) {
  return parseRoute(`#${to}`).screen !== null;
}

/** @param {string} to @param {{replace?: boolean}} [options] */
export function navigate(to, { replace = false } = {}) {
  if (replace) history.replaceState(history.state, "", `#${to}`);
  else history.pushState(null, "", `#${to}`);
  locationHash.value = `#${to}`;
}

addEventListener("popstate", () => {
  locationHash.value = location.hash;
});

/** Changes a part of the query. By default without a history entry, so that typing in a filter adds none.
 * @param {Record<string, string | number | null | undefined>} change @param {{replace?: boolean}} [options] */
export function setQuery(change, { replace = true } = {}) {
  const { path, query } = currentRoute.value;
  navigate(addQuery(path, { ...query, ...change }), { replace });
}

/** Addresses of the screens of one event, object, task and so on, and of filtered lists. */
export const screenPaths = {
  /** @param {number | string} id */
  event: (id) => `/events/${id}`,
  /** @param {string} key @param {string} [tenant] */
  object: (key, tenant) => addQuery(`/objects/${encodeURIComponent(key)}`, { tenant: tenant === "default" ? "" : tenant }),
  /** @param {string} id */
  task: (id) => `/tasks/${encodeURIComponent(id)}`,
  /** @param {Record<string, string | number | null | undefined>} query */
  tasks: (query) => addQuery("/tasks", query),
  /** @param {string} name */
  handler: (name) => `/handlers/${encodeURIComponent(name)}`,
  /** @param {string} name */
  schedule: (name) => `/schedules/${encodeURIComponent(name)}`,
  /** @param {string} path with its leading slash */
  chain: (path) => `/chains${path}`,
  /** @param {string} path with its leading slash @param {string} [tenant] */
  order: (path, tenant) => addQuery(`/orders${path}`, { tenant: tenant === "default" ? "" : tenant }),
  /** @param {Record<string, string | number | null | undefined>} query */
  stream: (query) => addQuery("/stream", query),
};
