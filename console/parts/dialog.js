// Dialogs, built on the native `<dialog>` for focus and Escape.

import { currentPrompt } from "./prompt.js";
import { Button } from "./button.js";
import { html, useEffect, useId, useRef, useState } from "./ui.js";

/** @typedef {import("./ui.js").Children} Children */

/** A dialog that is open while it is rendered.
 * @param {{title: string, onClose: () => void, children?: Children, class?: string, hideTitle?: boolean}} props
 *   `hideTitle`: the title is for screen readers only */
export function Dialog({ title, onClose, children, class: className = "", hideTitle = false }) {
  const element = useRef(/** @type {HTMLDialogElement | null} */ (null));
  const id = useId();
  useEffect(() => {
    const previousFocus = document.activeElement;
    element.current?.showModal();
    return () => {
      if (previousFocus instanceof HTMLElement && previousFocus.isConnected) previousFocus.focus();
    };
  }, []);
  return html`<dialog ref=${element} class=${className} aria-labelledby=${id}
    onCancel=${(/** @type {Event} */ event) => { event.preventDefault(); onClose(); }}
    onPointerDown=${(/** @type {PointerEvent} */ event) => { if (event.target === element.current) onClose(); }}>
    <div class="dialog-body">
      <h2 id=${id} class=${hideTitle ? "visually-hidden" : ""}>${title}</h2>
      ${children}
    </div>
  </dialog>`;
}

/** @typedef {import("./prompt.js").PromptField} PromptField */

/** Renders the open prompt. */
export function PromptDialog() {
  return currentPrompt.value && html`<${PromptForm} key=${currentPrompt.value.title} prompt=${currentPrompt.value} />`;
}

/** @param {{prompt: import("./prompt.js").OpenPrompt}} props */
function PromptForm({ prompt: { title, text, actionLabel, danger, fields = [], resolve } }) {
  const [values, setValues] = useState(Object.fromEntries(fields.map((field) => [field.name, field.value ?? ""])));
  /** @param {PromptField} field */
  const fieldError = ({ name, validate }) => (values[name].trim() === "" ? null : validate?.(values[name]) ?? null);
  const isComplete = fields.every((field) => (!field.required || values[field.name].trim() !== "") && fieldError(field) === null);
  const id = useId();
  /** @param {string} name */
  const fieldSetter = (name) => (/** @type {Event} */ event) =>
    setValues({ ...values, [name]: /** @type {HTMLInputElement} */ (event.target).value });
  return html`<${Dialog} title=${title} onClose=${() => resolve(null)}>
    <form onSubmit=${(/** @type {Event} */ event) => { event.preventDefault(); if (isComplete) resolve(values); }}>
      ${text && html`<div class="dialog-text">${text}</div>`}
      ${fields.map((field) => html`<div class="field" key=${field.name}>
        <label for=${`${id}-${field.name}`}>${field.label}${!field.required && !field.choices && html` <span class="faint">optional</span>`}</label>
        <${PromptInput} id=${`${id}-${field.name}`} field=${field} value=${values[field.name]} error=${fieldError(field)} onChange=${fieldSetter(field.name)} />
        ${field.hint && html`<span class="hint">${field.hint}</span>`}
      </div>`)}
      <div class="dialog-actions">
        <${Button} onClick=${() => resolve(null)}>Dismiss<//>
        <${Button} type="submit" kind=${danger ? "danger" : "primary"} disabled=${!isComplete}>${actionLabel}<//>
      </div>
    </form>
  <//>`;
}

/** @param {{id: string, field: PromptField, value: string, error: string | null, onChange: (event: Event) => void}}
 * props */
function PromptInput({ id, field: { choices, rows }, value, error, onChange }) {
  if (choices) {
    const options = choices.map((choice) => (typeof choice === "string" ? [choice, choice || "any"] : choice));
    return html`<select id=${id} value=${value} onChange=${onChange}>${options.map(([choice, label]) => html`<option key=${choice} value=${choice}>${label}</option>`)}</select>`;
  }
  const inputProps = { id, value, onInput: onChange, autocomplete: "off", spellcheck: false, "aria-invalid": error !== null, "aria-describedby": error ? `${id}-error` : undefined };
  return html`${rows ? html`<textarea ...${inputProps} rows=${rows} class="mono"></textarea>` : html`<input ...${inputProps} />`}
    ${error && html`<span class="field-error" id=${`${id}-error`}>${error}</span>`}`;
}
