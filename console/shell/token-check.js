// Checks a stored or entered token, and reads its owner.

import { api, invalidResponseProblem } from "../data/api.js";
import { Problem, errorText } from "../data/problem.js";
import { tokenOwner, signOut, token } from "../data/session.js";
import { ErrorState } from "../parts/states.js";
import { html, useEffect, useState } from "../parts/ui.js";

/** Roles that may use the console. */
const CONSOLE_ROLES = ["viewer", "operator", "admin"];

/** @param {string} token
 * @returns {Promise<import("../data/session.js").TokenOwner>} */
export async function fetchTokenOwner(token) {
  const owner = await api.get("/api/v1/me", { tokenOverride: token });
  if (!owner?.role) throw invalidResponseProblem();
  if (CONSOLE_ROLES.includes(owner.role)) return owner;
  throw new Error(`The token ${owner.name} has the role ${owner.role}, which has no access to the console. Use a token of a viewer, an operator or an admin.`);
}

export function TokenCheck() {
  const [error, setError] = useState(/** @type {unknown} */ (null));
  const check = () => {
    setError(null);
    fetchTokenOwner(token.value).then((owner) => {
      tokenOwner.value = owner;
    }, (problem) => {
      if (problem instanceof Problem) setError(problem);
      else signOut(errorText(problem));
    });
  };
  useEffect(check, []);
  useEffect(() => {
    if (!error) return undefined;
    const timer = setTimeout(check, 3000);
    return () => clearTimeout(timer);
  }, [error]);
  return html`<main class="login">${error ? html`<${ErrorState} error=${error} onRetry=${check} errorTitle="The server cannot be reached" />` : null}</main>`;
}
