// A token is there from before, or has just been given: whose it is.

import { api, invalidResponse } from "../data/api.js";
import { Problem, errorText } from "../data/problem.js";
import { tokenOwner, signOut, token } from "../data/session.js";
import { ErrorState } from "../parts/states.js";
import { html, useEffect, useState } from "../parts/ui.js";

/** Roles that can do something here. */
const CONSOLE_ROLES = ["viewer", "operator", "admin"];

/** @param {string} given
 * @returns {Promise<import("../data/session.js").TokenOwner>} */
export async function fetchTokenOwner(given) {
  const who = await api.get("/api/v1/me", { as: given });
  if (!who?.role) throw invalidResponse();
  if (CONSOLE_ROLES.includes(who.role)) return who;
  throw new Error(`The token ${who.name} has the role ${who.role}, which has no access to the console. Use a token of a viewer, an operator or an admin.`);
}

export function TokenCheck() {
  const [error, setError] = useState(/** @type {unknown} */ (null));
  const ask = () => {
    setError(null);
    fetchTokenOwner(token.value).then((who) => {
      tokenOwner.value = who;
    }, (problem) => {
      if (problem instanceof Problem) setError(problem);
      else signOut(errorText(problem));
    });
  };
  useEffect(ask, []);
  useEffect(() => {
    if (!error) return undefined;
    const timer = setTimeout(ask, 3000);
    return () => clearTimeout(timer);
  }, [error]);
  return html`<main class="login">${error ? html`<${ErrorState} error=${error} onRetry=${ask} what="The server cannot be reached" />` : null}</main>`;
}
