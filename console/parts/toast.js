// Toasts: short messages in the corner.

import { errorText } from "../data/problem.js";
import { now } from "../data/time.js";
import { Button } from "./button.js";
import { html, signal } from "./ui.js";

/** @typedef {{key: number, text: string, detail?: string, tone: "info" | "bad", durationMs: number, expiresAt: number, undo?: () => void, countdown: boolean}} Toast */

/** @type {import("../vendor/signals.js").Signal<Toast[]>} */
const toasts = signal([]);
let lastToastKey = 0;

/** @param {number} key */
function removeToast(key) {
  toasts.value = toasts.value.filter((toast) => toast.key !== key);
}

/** @param {{text: string, detail?: string, tone?: "info" | "bad", durationMs?: number, undo?: () => void, countdown?: boolean}}
 * toast */
export function showToast({ text, detail, tone = "info", durationMs = tone === "bad" ? 10_000 : 4000, undo, countdown = false }) {
  lastToastKey += 1;
  const key = lastToastKey;
  toasts.value = [...toasts.value.slice(-3), { key, text, detail, tone, durationMs, expiresAt: Date.now() + durationMs, undo, countdown }];
  setTimeout(() => removeToast(key), durationMs);
  return () => removeToast(key);
}

/** Shows an error. @param {unknown} error @param {string} [title] */
export function showError(error, title = "The action failed") {
  showToast({ text: title, detail: errorText(error), tone: "bad" });
}

export function Toasts() {
  return html`<div class="toasts" role="status" aria-live="polite">
    ${toasts.value.map(({ key, text, detail, tone, durationMs, expiresAt, undo, countdown }) => html`<div key=${key} class=${`toast ${tone}`}>
      <div class="toast-text"><span>${text}</span>${detail && html`<span class="toast-detail">${detail}</span>`}</div>
      ${countdown && html`<span class="faint number">in ${Math.max(1, Math.ceil((expiresAt - now.value) / 1000))} s</span>`}
      ${undo && html`<${Button} small onClick=${undo}>Undo<//>`}
      <${Button} small kind="quiet" icon="close" label="Close" onClick=${() => removeToast(key)} />
      ${countdown && html`<span class="toast-countdown" style=${{ animationDuration: `${durationMs}ms` }}></span>`}
    </div>`)}
  </div>`;
}
