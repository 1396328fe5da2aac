// Runs actions of the user: at once, or after a delay in which they can be undone.

import { token } from "../data/session.js";
import { showError, showToast } from "./toast.js";

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
