// A link carries another token than the one that is signed in: asks before it replaces that one, so that a
// stranger's link cannot do it unnoticed.

import { said } from "../data/problem.js";
import { me, offered, signIn } from "../data/session.js";
import { ask } from "../parts/ask.js";
import { tellError } from "../parts/toast.js";
import { html, useEffect } from "../parts/ui.js";
import { whose } from "./recall.js";

export function Offer() {
  useEffect(() => {
    decide(offered.value).finally(() => {
      offered.value = "";
    });
  }, []);
  return null;
}

/** @param {string} linked the token of the link */
async function decide(linked) {
  let owner;
  try {
    owner = await whose(linked);
  } catch (problem) {
    return tellError(`${said(problem)} You are still signed in as ${me.value?.name}.`, "The link's token was not used");
  }
  const agreed = await ask({
    title: "Use the token of this link?",
    text: html`You are signed in as <b>${me.value?.name}</b> (${me.value?.role}). The link you opened carries a token of
      <b> ${owner.name}</b> (${owner.role}). Switch only if you trust where the link came from.`,
    action: `Switch to ${owner.name}`,
  });
  if (agreed) signIn(linked, false, owner);
}
