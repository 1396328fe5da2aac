// Names and what belongs to them, one below the other.

import { html } from "./ui.js";

/** A fact without a value is left out: null, undefined or false.
 * @param {{of: [string, import("./ui.js").Children][], wide?: boolean}} props */
export function PropertyList({ of, wide = false }) {
  const there = of.filter(([, value]) => value !== null && value !== undefined && value !== false && value !== "");
  return html`<dl class=${wide ? "facts wide" : "facts"}>
    ${there.map(([name, value]) => html`<div key=${name}><dt>${name}</dt><dd>${value}</dd></div>`)}
  </dl>`;
}

/** A part of a screen with its heading.
 * @param {{title: string, aside?: import("./ui.js").Children, children?: import("./ui.js").Children, flush?: boolean, label?: string}} props
 *   `flush` is for tables, which have margins and a label of their own */
export function Panel({ title, aside, children, flush = false, label }) {
  return html`<section class=${flush ? "panel flush" : "panel"} aria-label=${label ?? (flush ? undefined : title)}>
    <header class="panel-head"><h2>${title}</h2>${aside && html`<div class="panel-aside">${aside}</div>`}</header>
    <div class="panel-body">${children}</div>
  </section>`;
}

/** The head of a screen: what it is, and what can be done with it.
 * @param {{title: import("./ui.js").Children, sub?: import("./ui.js").Children, children?: import("./ui.js").Children}} props */
export function ScreenHeader({ title, sub, children }) {
  return html`<header class="screen-head">
    <div class="screen-title"><h1>${title}</h1>${sub && html`<div class="screen-sub">${sub}</div>`}</div>
    <div class="actions">${children}</div>
  </header>`;
}
