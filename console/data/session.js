// Whose token this is and what it may do. The token is kept for the tab, or for the browser if the person says so.

import { computed, signal } from "../vendor/signals.js";

/** @typedef {"viewer" | "producer" | "worker" | "operator" | "admin"} Role */
/** @typedef {{name: string, role: Role, tenant: string | null}} Me */

const KEY = "pointsman.token";

/** A token that a link carries while another one is signed in. It is used only if the person agrees, or if the server
 * refuses the one that is signed in. */
export const offered = signal("");

/** The token; empty if nobody is signed in. */
export const token = signal(initial());

/** Who that is, once the server has told. @type {import("../vendor/signals.js").Signal<Me | null>} */
export const me = signal(null);

/** Why somebody was signed out, to be told on the way in again. */
export const signedOut = signal("");

/** The token to begin with: the stored one, or the one of a link where none is stored. */
function initial() {
  const linked = takeFromAddress();
  const known = stored();
  if (linked === "" || linked === known) return known;
  if (known !== "") {
    offered.value = linked;
    return known;
  }
  keep(linked, false);
  return linked;
}

/** Takes a token out of `#token=…`, and out of the address bar and the history with it. Empty if there is none. */
function takeFromAddress() {
  const found = /^#token=([^&]+)(?:&to=(.*))?$/.exec(location.hash);
  if (!found) return "";
  const [token, to] = found.slice(1).map(decoded);
  history.replaceState(null, "", `${location.pathname}#${to.startsWith("/") ? to : "/"}`);
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

/** Ends the session. A token that a link offered takes its place: there is nothing left to replace.
 * @param {string} [why] */
export function signOut(why = "") {
  const next = offered.value;
  offered.value = "";
  keep(next, false);
  if (next === "") for (const storage of storages()) storage.removeItem(KEY);
  signedOut.value = next === "" ? why : "";
  me.value = null;
  token.value = next;
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
