// Links between screens. Without a screen for the address, the text is rendered without a link.

import { screenExists, screenPaths } from "../shell/router.js";
import { classNames, html } from "./ui.js";

/** @typedef {import("./ui.js").Children} Children */

/** @param {{to: string, children?: Children, class?: string, title?: string, current?: boolean, onClick?: () => void}} props */
export function Link({ to, children, class: className, title, current, onClick }) {
  if (!screenExists(to)) return html`<span class=${className} title=${title}>${children}</span>`;
  return html`<a href=${`#${to}`} class=${className} title=${title} aria-current=${current ? "page" : undefined} onClick=${onClick}>${children}</a>`;
}

/** @param {{id: number | string}} props */
export function EventLink({ id }) {
  return html`<${Link} to=${screenPaths.event(id)} class="mono">${String(id)}<//>`;
}

/** `short` leaves out the middle of the id, since the end distinguishes tasks. `suffixOnly` shows only the end, which
 * the CLI accepts.
 * @param {{id: string, short?: boolean, suffixOnly?: boolean}} props */
export function TaskLink({ id, short = false, suffixOnly = false }) {
  return html`<${Link} to=${screenPaths.task(id)} class="mono" title=${id}>${suffixOnly ? `…${id.slice(-6)}` : short ? shortenTaskId(id) : id}<//>`;
}

/** `index_record.published_caa4bd93-…07`
 * @param {string} id */
export function shortenTaskId(id) {
  const match = /^(.*_[0-9a-f]{8}-).*(.{2})$/.exec(id);
  return match && id.length - match[1].length > 12 ? `${match[1]}…${match[2]}` : id;
}

/** @param {{name: string}} props */
export function HandlerLink({ name }) {
  return html`<${Link} to=${screenPaths.handler(name)}>${name}<//>`;
}

/** Links an object, or an order if the key is the path of one.
 * @param {{objectKey: string, tenant?: string, class?: string}} props */
export function ObjectOrOrderLink({ objectKey, tenant, class: className }) {
  const path = isOrderPath(objectKey) ? screenPaths.order(objectKey, tenant) : screenPaths.object(objectKey, tenant);
  const target = screenExists(path) ? path : screenPaths.stream({ key: objectKey });
  return html`<${Link} to=${target} class=${classNames("mono", className)} title=${objectKey}>${objectKey}<//>`;
}

/** @param {string} key */
export function isOrderPath(key) {
  return /^\/.*,[^,/]+$/.test(key);
}
