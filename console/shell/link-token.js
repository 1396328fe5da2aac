// Asks before the token of a link replaces the one that is signed in, so that a stranger's link cannot do it unnoticed.

import { errorText, Problem } from "../data/problem.js";
import { tokenOwner, linkTokenToConfirm, signIn } from "../data/session.js";
import { promptUser } from "../parts/prompt.js";
import { showError } from "../parts/toast.js";
import { html, useEffect } from "../parts/ui.js";
import { fetchTokenOwner } from "./token-check.js";

export function LinkTokenPrompt() {
  useEffect(() => {
    promptToSwitch(linkTokenToConfirm.value).finally(() => {
      linkTokenToConfirm.value = "";
    });
  }, []);
  return null;
}

/** @param {string} newToken the token of the link */
async function promptToSwitch(newToken) {
  let owner;
  try {
    owner = await fetchTokenOwner(newToken);
  } catch (problem) {
    const isUnknownToken = problem instanceof Problem && problem.status === 401;
    return showError(`${isUnknownToken ? "The server does not know this token." : errorText(problem)} You are still signed in as ${tokenOwner.value?.name}.`, "The link's token was not used");
  }
  const confirmed = await promptUser({
    title: "Use the token of this link?",
    text: html`You are signed in as <b>${tokenOwner.value?.name}</b> (${tokenOwner.value?.role}). The link you opened carries a token of
      <b> ${owner.name}</b> (${owner.role}). Switch only if you trust where the link came from.`,
    actionLabel: `Switch to ${owner.name}`,
  });
  if (confirmed) signIn(newToken, false, owner);
}
