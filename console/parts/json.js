// A collapsible JSON view with bounded size. All values are rendered as text.

import { ExactNumber } from "../data/api.js";
import { pluralize, formatBytes } from "../data/numbers.js";
import { Button } from "./button.js";
import { CopyButton } from "./copy.js";
import { html, useMemo, useState } from "./ui.js";

/** Members of an object, and characters of a string, shown at a time. */
const MAX_SHOWN_MEMBERS = 100;
const MAX_SHOWN_CHARS = 400;
/** Maximum lines that are expanded at first. */
const MAX_INITIAL_LINES = 60;

/** @param {{value: unknown, label?: string, openDepth?: number}} props `openDepth` is the depth that is expanded at first */
export function JsonView({ value, label = "JSON", openDepth = 2 }) {
  const text = useMemo(() => stringifyExact(value), [value]);
  const depth = useMemo(() => (countExpandedLines(value, openDepth) > MAX_INITIAL_LINES ? 1 : openDepth), [value, openDepth]);
  return html`<div class="json" role="group" aria-label=${label}>
    <div class="json-tools"><span class="faint number">${formatBytes(text.length)}</span><${CopyButton} text=${text} label=${label} /></div>
    <${JsonValue} value=${value} openDepth=${depth} isLast=${true} />
  </div>`;
}

/** Serializes JSON with all digits of long numbers. @param {unknown} value */
export function stringifyExact(value) {
  // Browsers that support `context.source` support `rawJSON`, too.
  const { rawJSON } = /** @type {any} */ (JSON);
  return JSON.stringify(value, (_, inner) => (inner instanceof ExactNumber ? rawJSON(inner.text) : inner), 2) ?? "null";
}

/** @param {unknown} value @param {number} depth @returns {number} */
function countExpandedLines(value, depth) {
  if (value === null || typeof value !== "object" || value instanceof ExactNumber || depth === 0) return 1;
  let sum = 2;
  for (const inner of Object.values(value)) {
    sum += countExpandedLines(inner, depth - 1);
    if (sum > MAX_INITIAL_LINES) break;
  }
  return sum;
}

/** @param {{value: unknown, name?: string, openDepth: number, isLast: boolean}} props @returns {any} */
function JsonValue({ value, name, openDepth, isLast }) {
  const comma = isLast ? "" : ",";
  const label = name === undefined ? null : html`<span class="json-name">${JSON.stringify(name)}</span>: `;
  if (value instanceof ExactNumber) return html`<div class="json-line">${label}<span class="json-number">${value.text}</span>${comma}</div>`;
  if (typeof value === "string") return html`<div class="json-line">${label}<${JsonString} text=${value} />${comma}</div>`;
  if (value === null || typeof value !== "object") {
    return html`<div class="json-line">${label}<span class=${`json-${value === null ? "null" : typeof value}`}>${String(value)}</span>${comma}</div>`;
  }
  return html`<${JsonBranch} value=${value} label=${label} openDepth=${openDepth} comma=${comma} />`;
}

/** @param {{value: object, label: unknown, openDepth: number, comma: string}} props */
function JsonBranch({ value, label, openDepth, comma }) {
  const [isOpen, setOpen] = useState(openDepth > 0);
  const [visibleCount, setVisibleCount] = useState(MAX_SHOWN_MEMBERS);
  const isArray = Array.isArray(value);
  const entries = Object.entries(value);
  const [left, right] = isArray ? ["[", "]"] : ["{", "}"];
  if (entries.length === 0) return html`<div class="json-line">${label}${left}${right}${comma}</div>`;
  const toggle = html`<button type="button" class="json-toggle" aria-expanded=${isOpen} aria-label=${isOpen ? "Collapse" : "Expand"}
    onClick=${() => setOpen(!isOpen)}></button>`;
  if (!isOpen) {
    return html`<div class="json-line">${toggle}${label}${left}<span class="faint"> ${pluralize(entries.length, isArray ? "item" : "member")} </span>${right}${comma}</div>`;
  }
  const hiddenCount = entries.length - visibleCount;
  return html`<div class="json-branch">
    <div class="json-line">${toggle}${label}${left}</div>
    <div class="json-inner">
      ${entries.slice(0, visibleCount).map(([name, inner], index) => html`<${JsonValue} key=${name} name=${isArray ? undefined : name} value=${inner}
        openDepth=${openDepth - 1} isLast=${index === entries.length - 1} />`)}
      ${hiddenCount > 0 && html`<${Button} small onClick=${() => setVisibleCount(visibleCount + MAX_SHOWN_MEMBERS)}>Show ${Math.min(hiddenCount, MAX_SHOWN_MEMBERS)} of ${hiddenCount} more<//>`}
    </div>
    <div class="json-line">${right}${comma}</div>
  </div>`;
}

/** @param {{text: string}} props */
function JsonString({ text }) {
  const [showAll, setShowAll] = useState(false);
  const isTruncated = !showAll && text.length > MAX_SHOWN_CHARS;
  return html`<span class="json-string">${JSON.stringify(isTruncated ? text.slice(0, MAX_SHOWN_CHARS) : text)}</span>${
    isTruncated && html` <${Button} small onClick=${() => setShowAll(true)}>Show all ${formatBytes(text.length)}<//>`}`;
}
