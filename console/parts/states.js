// What stands where there is nothing to show: yet, at all, or because something went wrong. Each says what to do.

import { Problem, errorText } from "../data/problem.js";
import { Icon } from "./icon.js";
import { Button } from "./button.js";
import { html, useLayoutEffect, useState } from "./ui.js";

/** @typedef {import("./ui.js").Children} Children */

/** Where nothing else of the screen is there, this is its heading.
 * @param {{children?: Children}} props */
function StateTitle({ children }) {
  const [alone, setAlone] = useState(false);
  useLayoutEffect(() => setAlone(!document.querySelector("main h1")), []);
  return alone ? html`<h1 class="state-title">${children}</h1>` : html`<p class="state-title">${children}</p>`;
}

/** @param {{title: string, children?: Children, icon?: import("./icon.js").IconName}} props */
export function EmptyState({ title, children, icon = "search" }) {
  return html`<div class="state"><${Icon} name=${icon} size=${20} /><${StateTitle}>${title}<//>
    ${children && html`<div class="state-text">${children}</div>`}</div>`;
}

/** Lines in the place of what is to come, so that nothing jumps.
 * @param {{lines?: number, label?: string}} props */
export function LoadingState({ lines = 6, label = "Loading" }) {
  return html`<div class="loading" role="status" aria-label=${label}>
    ${Array.from({ length: lines }, (_, index) => html`<span class="bone" key=${index}></span>`)}
  </div>`;
}

/** @param {{error: unknown, onRetry?: () => void, what?: string}} props */
export function ErrorState({ error, onRetry, what = "This could not be loaded" }) {
  const gone = error instanceof Problem && error.status === 404;
  return html`<div class="state" role="alert"><${Icon} name="failure" size=${20} />
    <${StateTitle}>${gone ? "Not found" : what}<//>
    <div class="state-text">${errorText(error)}${gone && " It may have expired, or belong to another tenant or server."}</div>
    ${onRetry && !gone && html`<${Button} onClick=${onRetry}>Try again<//>`}
  </div>`;
}

/** What was read and followed, or the state in its place. What was read before stays while a new read fails.
 * @template T
 * @param {{of: import("../data/live-data.js").LiveData<T>, children: (data: T) => Children, lines?: number, what?: string}} props */
export function LiveView({ of, children, lines, what }) {
  if (of.data === null && of.error) return html`<${ErrorState} error=${of.error} onRetry=${of.reload} what=${what} />`;
  if (of.data === null) return html`<${LoadingState} lines=${lines} />`;
  return html`${of.error ? html`<${StaleNotice} error=${of.error} onRetry=${of.reload} />` : null}${children(of.data)}`;
}

/** @param {{error: unknown, onRetry: () => void}} props */
function StaleNotice({ error, onRetry }) {
  return html`<p class="notice warn" role="status"><span>This may be out of date: ${errorText(error)}</span>
    <${Button} small onClick=${onRetry}>Try again<//></p>`;
}

/** A word in passing: torn streams, rules that hold, limits of what is shown.
 * @param {{tone?: "warn" | "bad" | "info", children?: Children}} props */
export function Notice({ tone = "info", children }) {
  return html`<div class=${`notice ${tone}`} role="status">${children}</div>`;
}
