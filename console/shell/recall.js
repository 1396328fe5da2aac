// A token is there from before, or has just been given: whose it is.

import { api, nonsense } from "../data/api.js";
import { Problem, said } from "../data/problem.js";
import { me, signOut, token } from "../data/session.js";
import { Failed } from "../parts/states.js";
import { html, useEffect, useState } from "../parts/ui.js";

/** Roles that can do something here. */
const SEEING = ["viewer", "operator", "admin"];

/** @param {string} given
 * @returns {Promise<import("../data/session.js").Me>} */
export async function whose(given) {
  const who = await api.get("/api/v1/me", { as: given });
  if (!who?.role) throw nonsense();
  if (SEEING.includes(who.role)) return who;
  throw new Error(`The token ${who.name} has the role ${who.role}, which has no access to the console. Use a token of a viewer, an operator or an admin.`);
}

export function Recall() {
  const [error, setError] = useState(/** @type {unknown} */ (null));
  const ask = () => {
    setError(null);
    whose(token.value).then((who) => {
      me.value = who;
    }, (problem) => {
      if (problem instanceof Problem) setError(problem);
      else signOut(said(problem));
    });
  };
  useEffect(ask, []);
  useEffect(() => {
    if (!error) return undefined;
    const timer = setTimeout(ask, 3000);
    return () => clearTimeout(timer);
  }, [error]);
  return html`<main class="login">${error ? html`<${Failed} error=${error} onRetry=${ask} what="The server cannot be reached" />` : null}</main>`;
}
