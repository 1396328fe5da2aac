// Questions before something is done, wherever they come from. The dialog itself is loaded with the first of them.

import { signal } from "./ui.js";

/** What is asked before something is done.
 * @typedef {object} PromptRequest
 * @property {string} title
 * @property {import("./ui.js").Children} [text]
 * @property {string} action the word on the button that does it
 * @property {boolean} [danger]
 * @property {PromptField[]} [fields] */

/** With `choices` it is picked, with `lines` there is room for so many; `fault` says what is wrong with a text, if anything.
 * @typedef {{name: string, label: string, hint?: string, value?: string, required?: boolean,
 *   choices?: (string | [string, string])[], lines?: number, fault?: (text: string) => string | null}} PromptField */

/** @typedef {PromptRequest & {answer: (values: Record<string, string> | null) => void}} OpenPrompt */

/** The one that is open. @type {import("../vendor/signals.js").Signal<OpenPrompt | null>} */
export const openPrompt = signal(null);

/** Asks, and answers with the values of the fields, or null if the person thought better of it.
 * @param {PromptRequest} asked
 * @returns {Promise<Record<string, string> | null>} */
export function promptUser(asked) {
  return new Promise((resolve) => {
    openPrompt.value?.answer(null);
    openPrompt.value = { ...asked, answer: (values) => {
      openPrompt.value = null;
      resolve(values);
    } };
  });
}
