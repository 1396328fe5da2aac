// Prompts before an action. The dialog is loaded with the first prompt.

import { signal } from "./ui.js";

/** A prompt before an action.
 * @typedef {object} PromptRequest
 * @property {string} title
 * @property {import("./ui.js").Children} [text]
 * @property {string} actionLabel label of the confirming button
 * @property {boolean} [danger]
 * @property {PromptField[]} [fields] */

/** A field: a select with `choices`, a text area with `rows`. `validate` returns an error text or null.
 * @typedef {{name: string, label: string, hint?: string, value?: string, required?: boolean,
 *   choices?: (string | [string, string])[], rows?: number, validate?: (text: string) => string | null}} PromptField */

/** @typedef {PromptRequest & {resolve: (values: Record<string, string> | null) => void}} OpenPrompt */

/** The prompt that is open. @type {import("../vendor/signals.js").Signal<OpenPrompt | null>} */
export const currentPrompt = signal(null);

/** Opens a prompt. Resolves to the values of the fields, or null if it was dismissed.
 * @param {PromptRequest} request
 * @returns {Promise<Record<string, string> | null>} */
export function promptUser(request) {
  return new Promise((resolvePromise) => {
    currentPrompt.value?.resolve(null);
    currentPrompt.value = { ...request, resolve: (values) => {
      currentPrompt.value = null;
      resolvePromise(values);
    } };
  });
}
