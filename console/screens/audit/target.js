// The target of an audit entry, as a link.

import { ObjectOrOrderLink, Link, TaskLink } from "../../parts/link.js";
import { html } from "../../parts/ui.js";
import { screenPaths } from "../../shell/router.js";

/** Parses a target, written as `kind name` and an optional rest. @param {string} text
 * @returns {{kind: string, name: string, rest: string} | null} */
export function parseAuditTarget(text) {
  const match = /^(handler|collection|schedule|chain|order|task|node) (\S+)(.*)$/s.exec(text);
  return match && { kind: match[1], name: match[2], rest: match[3] };
}

/** @param {{text: string}} props */
export function AuditTarget({ text }) {
  const target = parseAuditTarget(text);
  if (!target) return html`<span title=${text}>${text}</span>`;
  const { kind, name, rest } = target;
  return html`<span title=${text}><span class="faint">${kind} </span>${targetLink(kind, name)}${rest}</span>`;
}

/** @param {string} kind @param {string} name */
function targetLink(kind, name) {
  if (kind === "handler") return html`<${Link} to=${screenPaths.handler(name)}>${name}<//>`;
  if (kind === "collection") return html`<${Link} to=${screenPaths.handler(name.split("/")[0])}>${name}<//>`;
  if (kind === "schedule") return html`<${Link} to=${screenPaths.schedule(name)}>${name}<//>`;
  if (kind === "chain") return html`<${Link} to=${screenPaths.chain(name)}>${name}<//>`;
  if (kind === "order") return html`<${ObjectOrOrderLink} objectKey=${name} />`;
  if (kind === "task") return html`<${TaskLink} id=${name} short />`;
  return name;
}
