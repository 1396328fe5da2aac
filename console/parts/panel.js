// Layout parts of screens: header, panel, property list.

import { html } from "./ui.js";

/** Names with their values. An item with null, undefined, false or an empty text is left out.
 * @param {{items: [string, import("./ui.js").Children][], wide?: boolean}} props */
export function PropertyList({ items, wide = false }) {
  const presentItems = items.filter(([, value]) => value !== null && value !== undefined && value !== false && value !== "");
  return html`<dl class=${wide ? "property-list wide" : "property-list"}>
    ${presentItems.map(([name, value]) => html`<div key=${name}><dt>${name}</dt><dd>${value}</dd></div>`)}
  </dl>`;
}

/** A section of a screen with a heading.
 * @param {{title: string, aside?: import("./ui.js").Children, children?: import("./ui.js").Children, flush?: boolean, label?: string}} props
 *   `flush` is for tables, which have margins and a label of their own */
export function Panel({ title, aside, children, flush = false, label }) {
  return html`<section class=${flush ? "panel flush" : "panel"} aria-label=${label ?? (flush ? undefined : title)}>
    <header class="panel-head"><h2>${title}</h2>${aside && html`<div class="panel-aside">${aside}</div>`}</header>
    <div class="panel-body">${children}</div>
  </section>`;
}

/** The header of a screen: title, subtitle and actions.
 * @param {{title: import("./ui.js").Children, subtitle?: import("./ui.js").Children, children?: import("./ui.js").Children}} props */
export function ScreenHeader({ title, subtitle, children }) {
  return html`<header class="screen-head">
    <div class="screen-title"><h1>${title}</h1>${subtitle && html`<div class="screen-subtitle">${subtitle}</div>`}</div>
    <div class="actions">${children}</div>
  </header>`;
}
