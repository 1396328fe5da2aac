// Empty, loading and error states. Each says what to do.

import { Problem, errorText } from "../data/problem.js";
import { Icon } from "./icon.js";
import { Button } from "./button.js";
import { html, useLayoutEffect, useState } from "./ui.js";

/** @typedef {import("./ui.js").Children} Children */

/** The title, as the heading of the page if there is no other.
 * @param {{children?: Children}} props */
function StateTitle({ children }) {
  const [isOnlyHeading, setOnlyHeading] = useState(false);
  useLayoutEffect(() => setOnlyHeading(!document.querySelector("main h1")), []);
  return isOnlyHeading ? html`<h1 class="status-title">${children}</h1>` : html`<p class="status-title">${children}</p>`;
}

/** @param {{title: string, children?: Children, icon?: import("./icon.js").IconName}} props */
export function EmptyState({ title, children, icon = "search" }) {
  return html`<div class="status-message"><${Icon} name=${icon} size=${20} /><${StateTitle}>${title}<//>
    ${children && html`<div class="status-text">${children}</div>`}</div>`;
}

/** Placeholder lines, so that the layout does not jump.
 * @param {{lines?: number, label?: string}} props */
export function LoadingState({ lines = 6, label = "Loading" }) {
  return html`<div class="loading" role="status" aria-label=${label}>
    ${Array.from({ length: lines }, (_, index) => html`<span class="skeleton-line" key=${index}></span>`)}
  </div>`;
}

/** @param {{error: unknown, onRetry?: () => void, errorTitle?: string}} props */
export function ErrorState({ error, onRetry, errorTitle = "This could not be loaded" }) {
  const isNotFound = error instanceof Problem && error.status === 404;
  return html`<div class="status-message" role="alert"><${Icon} name="failure" size=${20} />
    <${StateTitle}>${isNotFound ? "Not found" : errorTitle}<//>
    <div class="status-text">${errorText(error)}${isNotFound && " It may have expired, or belong to another tenant or server."}</div>
    ${onRetry && !isNotFound && html`<${Button} onClick=${onRetry}>Try again<//>`}
  </div>`;
}

/** Renders live data, or its loading or error state. Previous data stays visible while a refresh fails.
 * @template T
 * @param {{live: import("../data/live-data.js").LiveData<T>, children: (data: T) => Children, lines?: number, errorTitle?: string}} props */
export function LiveView({ live, children, lines, errorTitle }) {
  if (live.data === null && live.error) return html`<${ErrorState} error=${live.error} onRetry=${live.reload} errorTitle=${errorTitle} />`;
  if (live.data === null) return html`<${LoadingState} lines=${lines} />`;
  return html`${live.error ? html`<${StaleNotice} error=${live.error} onRetry=${live.reload} />` : null}${children(live.data)}`;
}

/** @param {{error: unknown, onRetry: () => void}} props */
function StaleNotice({ error, onRetry }) {
  return html`<p class="notice warn" role="status"><span>This may be out of date: ${errorText(error)}</span>
    <${Button} small onClick=${onRetry}>Try again<//></p>`;
}

/** A short message above the content, such as a torn stream or a row limit.
 * @param {{tone?: "warn" | "bad" | "info", children?: Children}} props */
export function Notice({ tone = "info", children }) {
  return html`<div class=${`notice ${tone}`} role="status">${children}</div>`;
}
