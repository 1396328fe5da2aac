// Links between screens. Where the screen is not there, the text stands without a link.

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

/** An id is long, and its end tells tasks apart: the middle gives way first. `tail` is the end alone, as the command line
 * takes it, for where the handler is told beside it.
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

/** An object, or an order where the key is the path of one.
 * @param {{of: string, tenant?: string, class?: string}} props */
export function KeyLink({ of, tenant, class: more }) {
  const to = isOrderPath(of) ? screenPaths.order(of, tenant) : screenPaths.object(of, tenant);
  const there = screenExists(to) ? to : screenPaths.stream({ key: of });
  return html`<${Link} to=${there} class=${classNames("mono", more)} title=${of}>${of}<//>`;
}

/** @param {string} key */
export function isOrderPath(key) {
  return /^\/.*,[^,/]+$/.test(key);
}
