// Checks a stored or entered token, and reads its name, role and tenant.

import { api, invalidResponseProblem } from "../data/api.js";
import { Problem, errorText } from "../data/problem.js";
import { tokenDetails, signOut, token } from "../data/session.js";
import { ErrorState } from "../parts/states.js";
import { html, useEffect, useState } from "../parts/ui.js";

/** Roles that may use the console. */
const CONSOLE_ROLES = ["viewer", "operator", "admin"];

/** Reads the name, role and tenant of a token. Throws an error if its role may not use the console.
 * @param {string} token
 * @returns {Promise<import("../data/session.js").TokenDetails>} */
export async function fetchTokenDetails(token) {
  const details = await api.get("/api/v1/me", { tokenOverride: token });
  if (!details?.role) throw invalidResponseProblem();
  if (CONSOLE_ROLES.includes(details.role)) return details;
  throw new Error(`The token ${details.name} has the role ${details.role}, which has no access to the console. Use a token of a viewer, an operator or an admin.`);
}

/** Rendered until the server has confirmed the token. Repeats the check while the server cannot be reached. */
export function TokenCheck() {
  const [error, setError] = useState(/** @type {unknown} */ (null));
  const check = () => {
    setError(null);
    fetchTokenDetails(token.value).then((details) => {
      tokenDetails.value = details;
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
