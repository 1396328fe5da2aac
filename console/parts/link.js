// Links between screens. Without a screen for the address, the text is rendered without a link.

import { screenExists, screenPaths } from "../shell/router.js";
import { classNames, html } from "./ui.js";

/** @typedef {import("./ui.js").Children} Children */

/** @param {{to: string, children?: Children, class?: string, title?: string, current?: boolean, onClick?: () => void}} props */
export function Link({ to, children, class: more, title, current, onClick }) {
  if (!screenExists(to)) return html`<span class=${more} title=${title}>${children}</span>`;
  return html`<a href=${`#${to}`} class=${more} title=${title} aria-current=${current ? "page" : undefined} onClick=${onClick}>${children}</a>`;
}

/** @param {{id: number | string}} props */
export function EventLink({ id }) {
  return html`<${Link} to=${screenPaths.event(id)} class="mono">${String(id)}<//>`;
}

/** `short` leaves out the middle of the id, since the end distinguishes tasks. `tail` shows only the end, which the
 * CLI accepts.
 * @param {{id: string, short?: boolean, tail?: boolean}} props */
export function TaskLink({ id, short = false, tail = false }) {
  return html`<${Link} to=${screenPaths.task(id)} class="mono" title=${id}>${tail ? `…${id.slice(-6)}` : short ? shortenTaskId(id) : id}<//>`;
}

/** `index_record.published_caa4bd93-…07`
 * @param {string} id */
export function shortenTaskId(id) {
  const found = /^(.*_[0-9a-f]{8}-).*(.{2})$/.exec(id);
  return found && id.length - found[1].length > 12 ? `${found[1]}…${found[2]}` : id;
}

/** @param {{name: string}} props */
export function HandlerLink({ name }) {
  return html`<${Link} to=${screenPaths.handler(name)}>${name}<//>`;
}

/** Links an object, or an order if the key is the path of one.
 * @param {{objectKey: string, tenant?: string, class?: string}} props */
export function KeyLink({ objectKey, tenant, class: more }) {
  const screen = isOrderPath(objectKey) ? screenPaths.order(objectKey, tenant) : screenPaths.object(objectKey, tenant);
  const target = screenExists(screen) ? screen : screenPaths.stream({ key: objectKey });
  return html`<${Link} to=${target} class=${classNames("mono", more)} title=${objectKey}>${objectKey}<//>`;
}

/** @param {string} key */
export function isOrderPath(key) {
  return /^\/.*,[^,/]+$/.test(key);
}
