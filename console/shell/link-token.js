// Asks before the token of a link replaces the one that is signed in, so that a stranger's link cannot do it unnoticed.

import { errorText, Problem } from "../data/problem.js";
import { tokenDetails, linkTokenToConfirm, signIn } from "../data/session.js";
import { promptUser } from "../parts/prompt.js";
import { showError } from "../parts/toast.js";
import { html, useEffect } from "../parts/ui.js";
import { fetchTokenDetails } from "./token-check.js";

export function LinkTokenPrompt() {
  useEffect(() => {
    confirmAndSwitchToken(linkTokenToConfirm.value).finally(() => {
      linkTokenToConfirm.value = "";
    });
  }, []);
  return null;
}

/** @param {string} newToken the token of the link */
async function confirmAndSwitchToken(newToken) {
  let details;
  try {
    details = await fetchTokenDetails(newToken);
  } catch (problem) {
    const isUnknownToken = problem instanceof Problem && problem.status === 401;
    return showError(`${isUnknownToken ? "The server does not know this token." : errorText(problem)} You are still signed in as ${tokenDetails.value?.name}.`, "The link's token was not used");
  }
  const confirmed = await promptUser({
    title: "Use the token of this link?",
    text: html`You are signed in as <b>${tokenDetails.value?.name}</b> (${tokenDetails.value?.role}). The link you opened carries a token of
      <b> ${details.name}</b> (${details.role}). Switch only if you trust where the link came from.`,
    actionLabel: `Switch to ${details.name}`,
  });
  if (confirmed) signIn(newToken, false, details);
}
