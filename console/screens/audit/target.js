// What was done to what, with a way to it.

import { KeyLink, Link, TaskLink } from "../../parts/link.js";
import { html } from "../../parts/ui.js";
import { screenPaths } from "../../shell/router.js";

/** A deed names a thing as `kind name`, and may say for whom. @param {string} what
 * @returns {{kind: string, name: string, rest: string} | null} */
export function parseTarget(what) {
  const found = /^(handler|collection|schedule|chain|order|task|node) (\S+)(.*)$/s.exec(what);
  return found && { kind: found[1], name: found[2], rest: found[3] };
}

/** @param {{what: string}} props */
export function AuditTarget({ what }) {
  const of = parseTarget(what);
  if (!of) return html`<span title=${what}>${what}</span>`;
  const { kind, name, rest } = of;
  return html`<span title=${what}><span class="faint">${kind} </span>${targetLink(kind, name)}${rest}</span>`;
}

/** @param {string} kind @param {string} name */
function targetLink(kind, name) {
  if (kind === "handler") return html`<${Link} to=${screenPaths.handler(name)}>${name}<//>`;
  if (kind === "collection") return html`<${Link} to=${screenPaths.handler(name.split("/")[0])}>${name}<//>`;
  if (kind === "schedule") return html`<${Link} to=${screenPaths.schedule(name)}>${name}<//>`;
  if (kind === "chain") return html`<${Link} to=${screenPaths.chain(name)}>${name}<//>`;
  if (kind === "order") return html`<${KeyLink} of=${name} />`;
  if (kind === "task") return html`<${TaskLink} id=${name} short />`;
  return name;
}
