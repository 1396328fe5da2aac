// Whose token this is and what it may do. The token is kept for the tab, or for the browser if the person says so.

import { computed, signal } from "../vendor/signals.js";

/** @typedef {"viewer" | "producer" | "worker" | "operator" | "admin"} Role */
/** @typedef {{name: string, role: Role, tenant: string | null}} TokenOwner */

const STORAGE_KEY = "pointsman.token";

/** A token that a link carries while another one is signed in. It is used only if the person agrees, or if the server
 * refuses the one that is signed in. */
export const linkToken = signal("");

/** The token; empty if nobody is signed in. */
export const token = signal(initialToken());

/** Who that is, once the server has told. @type {import("../vendor/signals.js").Signal<TokenOwner | null>} */
export const tokenOwner = signal(null);

/** Why somebody was signed out, to be told on the way in again. */
export const signOutReason = signal("");

/** The token to begin with: the stored one, or the one of a link where none is stored. */
function initialToken() {
  const linked = takeTokenFromAddress();
  const known = readStoredToken();
  if (linked === "" || linked === known) return known;
  if (known !== "") {
    linkToken.value = linked;
    return known;
  }
  storeToken(linked, false);
  return linked;
}

/** Takes a token out of `#token=…`, and out of the address bar and the history with it. Empty if there is none. */
function takeTokenFromAddress() {
  const found = /^#token=([^&]+)(?:&to=(.*))?$/.exec(location.hash);
  if (!found) return "";
  const [token, to] = found.slice(1).map(decodeOrKeep);
  history.replaceState(null, "", `${location.pathname}#${to.startsWith("/") ? to : "/"}`);
  return token;
}

/** A part of an address, as it is if nobody has encoded it. */
function decodeOrKeep(text = "") {
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

function readStoredToken() {
  for (const storage of listStorages()) {
    const token = storage.getItem(STORAGE_KEY);
    if (token) return token;
  }
  return "";
}

/** @param {string} token @param {boolean} stay also when the browser is closed */
function storeToken(token, stay) {
  const [tab, browser] = listStorages();
  tab?.removeItem(STORAGE_KEY);
  browser?.removeItem(STORAGE_KEY);
  (stay ? browser : tab)?.setItem(STORAGE_KEY, token);
}

/** Storage may be forbidden; then the token lives as long as the page. */
function listStorages() {
  try {
    return [sessionStorage, localStorage];
  } catch {
    return [];
  }
}

/** @param {string} fresh @param {boolean} stay @param {TokenOwner} who */
export function signIn(fresh, stay, who) {
  storeToken(fresh, stay);
  signOutReason.value = "";
  tokenOwner.value = who;
  token.value = fresh;
}

/** Ends the session. A token that a link offered takes its place: there is nothing left to replace.
 * @param {string} [why] */
export function signOut(why = "") {
  const next = linkToken.value;
  linkToken.value = "";
  storeToken(next, false);
  if (next === "") for (const storage of listStorages()) storage.removeItem(STORAGE_KEY);
  signOutReason.value = next === "" ? why : "";
  tokenOwner.value = null;
  token.value = next;
}

/** @type {Record<Role, Role[]>} */
const INCLUDED_ROLES = {
  viewer: ["viewer"],
  producer: ["producer"],
  worker: ["worker"],
  operator: ["operator", "viewer"],
  admin: ["admin", "operator", "worker", "producer", "viewer"],
};

/** Whether the one who is signed in may do what this role may do. The server decides; this only leaves out what it
 * would refuse.
 * @param {Role} role */
export function hasRole(role) {
  return tokenOwner.value !== null && INCLUDED_ROLES[tokenOwner.value.role]?.includes(role) === true;
}

/** The tenant that the token is bound to, if it is. */
export const boundTenant = computed(() => tokenOwner.value?.tenant ?? null);
