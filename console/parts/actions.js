// Runs actions of the user: at once, or after a delay in which they can be undone.

import { token } from "../data/session.js";
import { showError, showToast } from "./toast.js";

/** Delayed actions that have not started. */
const pendingUndoableActions = new Set();
addEventListener("beforeunload", (event) => {
  if (pendingUndoableActions.size) event.preventDefault();
});

/** Runs an action after a few seconds, unless the user undoes it. Resolves to whether it succeeded.
 * @param {{text: string, run: () => Promise<unknown>, doneText?: string, delayMs?: number}} action */
export function runWithUndo({ text, run, doneText, delayMs = 5000 }) {
  return /** @type {Promise<boolean>} */ (new Promise((resolve) => {
    const action = {};
    const startToken = token.value;
    pendingUndoableActions.add(action);
    const timer = setTimeout(async () => {
      pendingUndoableActions.delete(action);
      // If another token was signed in meanwhile, the action must not run with it.
      if (token.value !== startToken) return resolve(false);
      try {
        await run();
        if (doneText) showToast({ text: doneText });
        resolve(true);
      } catch (error) {
        showError(error, `${text}: failed`);
        resolve(false);
      }
    }, delayMs);
    const close = showToast({ text, durationMs: delayMs, countdown: true, undo: () => {
      clearTimeout(timer);
      pendingUndoableActions.delete(action);
      close();
      showToast({ text: "Undone: nothing was changed" });
      resolve(false);
    } });
  }));
}

/** Runs an action and shows its result. Resolves to whether it succeeded.
 * @param {() => Promise<unknown>} run @param {string} doneText @param {string} [failedTitle] */
export async function runWithToast(run, doneText, failedTitle) {
  try {
    await run();
    showToast({ text: doneText });
    return true;
  } catch (error) {
    showError(error, failedTitle);
    return false;
  }
}
