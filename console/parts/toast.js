// Toasts: results, errors, and delayed actions that can be undone.

import { errorText } from "../data/problem.js";
import { token } from "../data/session.js";
import { now } from "../data/time.js";
import { Button } from "./button.js";
import { html, signal } from "./ui.js";

/** @typedef {{key: number, text: string, detail?: string, tone: "info" | "bad", ms: number, until: number, undo?: () => void, bar: boolean}} Toast */

/** @type {import("../vendor/signals.js").Signal<Toast[]>} */
const toasts = signal([]);
let lastKey = 0;

/** @param {number} key */
function removeToast(key) {
  toasts.value = toasts.value.filter((toast) => toast.key !== key);
}

/** @param {{text: string, detail?: string, tone?: "info" | "bad", ms?: number, undo?: () => void, bar?: boolean}}
 * toast */
export function showToast({ text, detail, tone = "info", ms = tone === "bad" ? 10_000 : 4000, undo, bar = false }) {
  lastKey += 1;
  const key = lastKey;
  toasts.value = [...toasts.value.slice(-3), { key, text, detail, tone, ms, until: Date.now() + ms, undo, bar }];
  setTimeout(() => removeToast(key), ms);
  return () => removeToast(key);
}

/** Shows an error. @param {unknown} error @param {string} [title] */
export function showError(error, title = "The action failed") {
  showToast({ text: title, detail: errorText(error), tone: "bad" });
}

/** Delayed actions that have not started. */
const pendingActions = new Set();
addEventListener("beforeunload", (event) => {
  if (pendingActions.size) event.preventDefault();
});

/** Runs an action after a few seconds, unless the user undoes it. Resolves to whether it was done.
 * @param {{text: string, run: () => Promise<unknown>, done?: string, ms?: number}} pending */
export function runWithUndo({ text, run, done, ms = 5000 }) {
  return /** @type {Promise<boolean>} */ (new Promise((resolve) => {
    const pending = {};
    const startedBy = token.value;
    pendingActions.add(pending);
    const timer = setTimeout(async () => {
      pendingActions.delete(pending);
      // A token that signed in meanwhile must not run it.
      if (token.value !== startedBy) return resolve(false);
      try {
        await run();
        if (done) showToast({ text: done });
        resolve(true);
      } catch (error) {
        showError(error, `${text}: failed`);
        resolve(false);
      }
    }, ms);
    const close = showToast({ text, ms, bar: true, undo: () => {
      clearTimeout(timer);
      pendingActions.delete(pending);
      close();
      showToast({ text: "Undone: nothing was changed" });
      resolve(false);
    } });
  }));
}

/** Runs an action and shows its result. Resolves to whether it succeeded.
 * @param {() => Promise<unknown>} run @param {string} done @param {string} [failed] */
export async function runWithToast(run, done, failed) {
  try {
    await run();
    showToast({ text: done });
    return true;
  } catch (error) {
    showError(error, failed);
    return false;
  }
}

export function Toasts() {
  return html`<div class="toasts" role="status" aria-live="polite">
    ${toasts.value.map(({ key, text, detail, tone, ms, until, undo, bar }) => html`<div key=${key} class=${`toast ${tone}`}>
      <div class="toast-text"><span>${text}</span>${detail && html`<span class="toast-detail">${detail}</span>`}</div>
      ${bar && html`<span class="faint number">in ${Math.max(1, Math.ceil((until - now.value) / 1000))} s</span>`}
      ${undo && html`<${Button} small onClick=${undo}>Undo<//>`}
      <${Button} small kind="quiet" icon="close" label="Close" onClick=${() => removeToast(key)} />
      ${bar && html`<span class="toast-bar" style=${{ animationDuration: `${ms}ms` }}></span>`}
    </div>`)}
  </div>`;
}
