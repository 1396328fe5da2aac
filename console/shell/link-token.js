// Asks before the token of a link replaces the one that is signed in, so that a stranger's link cannot do it unnoticed.

import { errorText, Problem } from "../data/problem.js";
import { tokenOwner, linkToken, signIn } from "../data/session.js";
import { promptUser } from "../parts/prompt.js";
import { showError } from "../parts/toast.js";
import { html, useEffect } from "../parts/ui.js";
import { fetchTokenOwner } from "./token-check.js";

export function LinkTokenPrompt() {
  useEffect(() => {
    promptToSwitch(linkToken.value).finally(() => {
      linkToken.value = "";
    });
  }, []);
  return null;
}

/** @param {string} linked the token of the link */
async function promptToSwitch(linked) {
  let owner;
  try {
    owner = await fetchTokenOwner(linked);
  } catch (problem) {
    const isUnknown = problem instanceof Problem && problem.status === 401;
    return showError(`${isUnknown ? "The server does not know this token." : errorText(problem)} You are still signed in as ${tokenOwner.value?.name}.`, "The link's token was not used");
  }
  const agreed = await promptUser({
    title: "Use the token of this link?",
    text: html`You are signed in as <b>${tokenOwner.value?.name}</b> (${tokenOwner.value?.role}). The link you opened carries a token of
      <b> ${owner.name}</b> (${owner.role}). Switch only if you trust where the link came from.`,
    action: `Switch to ${owner.name}`,
  });
  if (agreed) signIn(linked, false, owner);
}
