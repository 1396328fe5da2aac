// The token, and its name, role and tenant. The token is stored for the tab, or for the browser if the user chooses so.

import { computed, signal } from "../vendor/signals.js";

/** @typedef {"viewer" | "producer" | "worker" | "operator" | "admin"} Role */
/** @typedef {{name: string, role: Role, tenant: string | null}} TokenDetails */

const TOKEN_STORAGE_KEY = "pointsman.token";

/** A token of a link that was opened while another token is signed in. It is used if the user agrees, or if the
 * server refuses the current one. */
export const linkTokenToConfirm = signal("");

/** Whether the token came with a link: until it is confirmed it may never have been valid. */
let isTokenFromLink = false;

/** The token; empty when signed out. */
export const token = signal(determineInitialToken());

/** The name, role and tenant of the token; null until the server has confirmed the token.
 * @type {import("../vendor/signals.js").Signal<TokenDetails | null>} */
export const tokenDetails = signal(null);

/** Why the session ended, shown on the login page. */
export const signOutReason = signal("");

/** The token when the page is loaded: the stored token, or the token of the link if none is stored, which is then
 * stored. If there are both, the token of the link has to be confirmed. */
function determineInitialToken() {
  const tokenInLink = takeTokenFromAddress();
  const storedToken = readStoredToken();
  if (tokenInLink === "" || tokenInLink === storedToken) return storedToken;
  if (storedToken !== "") {
    linkTokenToConfirm.value = tokenInLink;
    return storedToken;
  }
  storeToken(tokenInLink, false);
  isTokenFromLink = true;
  return tokenInLink;
}

/** Takes a token from `#token=…` and removes it from the address bar and the history. Empty if there is none. */
function takeTokenFromAddress() {
  const found = /^#token=([^&]+)(?:&to=(.*))?$/.exec(location.hash);
  if (!found) return "";
  const [token, to] = found.slice(1).map(decodeIfEncoded);
  history.replaceState(null, "", `${location.pathname}#${to.startsWith("/") ? to : "/"}`);
  return token;
}

/** Decodes a part of an address, or returns it unchanged if it is not encoded. */
function decodeIfEncoded(text = "") {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

// A link with a token may be opened in a tab that already shows the console.
addEventListener("hashchange", () => {
  if (location.hash.startsWith("#token=")) location.reload();
});

function readStoredToken() {
  for (const storage of listTokenStorages()) {
    const token = storage.getItem(TOKEN_STORAGE_KEY);
    if (token) return token;
  }
  return "";
}

/** @param {string} token @param {boolean} persist also when the browser is closed */
function storeToken(token, persist) {
  const [tab, browser] = listTokenStorages();
  tab?.removeItem(TOKEN_STORAGE_KEY);
  browser?.removeItem(TOKEN_STORAGE_KEY);
  (persist ? browser : tab)?.setItem(TOKEN_STORAGE_KEY, token);
}

/** Empty if the browser forbids storage: the token is then lost when the page is closed. */
function listTokenStorages() {
  try {
    return [sessionStorage, localStorage];
  } catch {
    return [];
  }
}

/** @param {string} newToken @param {boolean} persist @param {TokenDetails} details */
export function signIn(newToken, persist, details) {
  storeToken(newToken, persist);
  signOutReason.value = "";
  tokenDetails.value = details;
  token.value = newToken;
}

/** Ends the session. A token of a link is signed in instead, without a prompt.
 * @param {string} [reason] */
export function signOut(reason = "") {
  const nextToken = linkTokenToConfirm.value;
  linkTokenToConfirm.value = "";
  storeToken(nextToken, false);
  isTokenFromLink = true;
  if (nextToken === "") for (const storage of listTokenStorages()) storage.removeItem(TOKEN_STORAGE_KEY);
  signOutReason.value = nextToken === "" ? reason : "";
  tokenDetails.value = null;
  token.value = nextToken;
}

/** Ends the session because the server refused the token. */
export function signOutBecauseTokenRefused() {
  signOut(isTokenFromLink && tokenDetails.value === null ? "The token of the link is not valid. Sign in with another." : "The token is no longer accepted. Sign in with another.");
}

/** @type {Record<Role, Role[]>} */
const INCLUDED_ROLES = {
  viewer: ["viewer"],
  producer: ["producer"],
  worker: ["worker"],
  operator: ["operator", "viewer"],
  admin: ["admin", "operator", "worker", "producer", "viewer"],
};

/** Whether the token includes a role. The server decides; the console only hides actions that it would refuse.
 * @param {Role} role */
export function hasRole(role) {
  return tokenDetails.value !== null && INCLUDED_ROLES[tokenDetails.value.role]?.includes(role) === true;
}

/** The tenant that the token is bound to, or null. */
export const boundTenant = computed(() => tokenDetails.value?.tenant ?? null);
