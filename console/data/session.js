// Whose token this is and what it may do. The token is kept for the tab, or for the browser if the person says so.

import { computed, signal } from "../vendor/signals.js";

/** @typedef {"viewer" | "producer" | "worker" | "operator" | "admin"} Role */
/** @typedef {{name: string, role: Role, tenant: string | null}} Me */

const KEY = "pointsman.token";

/** The token; empty if nobody is signed in. */
export const token = signal(fromAddress() ?? stored());

/** Who that is, once the server has told. @type {import("../vendor/signals.js").Signal<Me | null>} */
export const me = signal(null);

/** Why somebody was signed out, to be told on the way in again. */
export const signedOut = signal("");

/** Takes a token out of `#token=…`, and out of the address bar and the history with it. */
function fromAddress() {
  const found = /^#token=([^&]+)(?:&to=(.*))?$/.exec(location.hash);
  if (!found) return null;
  const [token, to] = found.slice(1).map(decoded);
  history.replaceState(null, "", `${location.pathname}#${to.startsWith("/") ? to : "/"}`);
  keep(token, false);
  return token;
}

/** A part of an address, as it is if nobody has encoded it. */
function decoded(text = "") {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

// A link with a token may be opened where the console already is.
addEventListener("hashchange", () => {
  if (location.hash.startsWith("#token=")) location.reload();
});

function stored() {
  for (const storage of storages()) {
    const token = storage.getItem(KEY);
    if (token) return token;
  }
  return "";
}

/** @param {string} token @param {boolean} stay also when the browser is closed */
function keep(token, stay) {
  const [tab, browser] = storages();
  tab?.removeItem(KEY);
  browser?.removeItem(KEY);
  (stay ? browser : tab)?.setItem(KEY, token);
}

/** Storage may be forbidden; then the token lives as long as the page. */
function storages() {
  try {
    return [sessionStorage, localStorage];
  } catch {
    return [];
  }
}

/** @param {string} fresh @param {boolean} stay @param {Me} who */
export function signIn(fresh, stay, who) {
  keep(fresh, stay);
  signedOut.value = "";
  me.value = who;
  token.value = fresh;
}

/** @param {string} [why] */
export function signOut(why = "") {
  keep("", false);
  for (const storage of storages()) storage.removeItem(KEY);
  signedOut.value = why;
  me.value = null;
  token.value = "";
}

/** @type {Record<Role, Role[]>} */
const INCLUDES = {
  viewer: ["viewer"],
  producer: ["producer"],
  worker: ["worker"],
  operator: ["operator", "viewer"],
  admin: ["admin", "operator", "worker", "producer", "viewer"],
};

/** Whether the one who is signed in may do what this role may do. The server decides; this only leaves out what it
 * would refuse.
 * @param {Role} role */
export function may(role) {
  return me.value !== null && INCLUDES[me.value.role]?.includes(role) === true;
}

/** The tenant that the token is bound to, if it is. */
export const bound = computed(() => me.value?.tenant ?? null);
