// Dialogs: the browser's own, so that focus and Escape work as everywhere.

import { openPrompt } from "./prompt.js";
import { Button } from "./button.js";
import { html, useEffect, useId, useRef, useState } from "./ui.js";

/** @typedef {import("./ui.js").Children} Children */

/** A dialog that is open as long as it is there.
 * @param {{title: string, onClose: () => void, children?: Children, class?: string, bare?: boolean}} props `bare`: its title
 *   is only read out */
export function Dialog({ title, onClose, children, class: more = "", bare = false }) {
  const element = useRef(/** @type {HTMLDialogElement | null} */ (null));
  const id = useId();
  useEffect(() => {
    const back = document.activeElement;
    element.current?.showModal();
    return () => {
      if (back instanceof HTMLElement && back.isConnected) back.focus();
    };
  }, []);
  return html`<dialog ref=${element} class=${more} aria-labelledby=${id}
    onCancel=${(/** @type {Event} */ event) => { event.preventDefault(); onClose(); }}
    onPointerDown=${(/** @type {PointerEvent} */ event) => { if (event.target === element.current) onClose(); }}>
    <div class="dialog-body">
      <h2 id=${id} class=${bare ? "unseen" : ""}>${title}</h2>
      ${children}
    </div>
  </dialog>`;
}

/** @typedef {import("./prompt.js").PromptField} PromptField */

/** Where questions appear. */
export function PromptDialog() {
  return openPrompt.value && html`<${PromptForm} key=${openPrompt.value.title} of=${openPrompt.value} />`;
}

/** @param {{of: import("./prompt.js").OpenPrompt}} props */
function PromptForm({ of: { title, text, action, danger, fields = [], answer } }) {
  const [values, setValues] = useState(Object.fromEntries(fields.map((field) => [field.name, field.value ?? ""])));
  /** @param {PromptField} field */
  const fault = ({ name, fault }) => (values[name].trim() === "" ? null : fault?.(values[name]) ?? null);
  const complete = fields.every((field) => (!field.required || values[field.name].trim() !== "") && fault(field) === null);
  const id = useId();
  /** @param {string} name */
  const change = (name) => (/** @type {Event} */ event) =>
    setValues({ ...values, [name]: /** @type {HTMLInputElement} */ (event.target).value });
  return html`<${Dialog} title=${title} onClose=${() => answer(null)}>
    <form onSubmit=${(/** @type {Event} */ event) => { event.preventDefault(); if (complete) answer(values); }}>
      ${text && html`<div class="dialog-text">${text}</div>`}
      ${fields.map((field) => html`<div class="field" key=${field.name}>
        <label for=${`${id}-${field.name}`}>${field.label}${!field.required && !field.choices && html` <span class="faint">optional</span>`}</label>
        <${PromptInput} id=${`${id}-${field.name}`} field=${field} value=${values[field.name]} fault=${fault(field)} onChange=${change(field.name)} />
        ${field.hint && html`<span class="hint">${field.hint}</span>`}
      </div>`)}
      <div class="dialog-actions">
        <${Button} onClick=${() => answer(null)}>Dismiss<//>
        <${Button} type="submit" kind=${danger ? "danger" : "primary"} disabled=${!complete}>${action}<//>
      </div>
    </form>
  <//>`;
}

/** @param {{id: string, field: PromptField, value: string, fault: string | null, onChange: (event: Event) => void}} props */
function PromptInput({ id, field: { choices, lines }, value, fault, onChange }) {
  if (choices) {
    const named = choices.map((choice) => (typeof choice === "string" ? [choice, choice || "any"] : choice));
    return html`<select id=${id} value=${value} onChange=${onChange}>${named.map(([choice, name]) => html`<option key=${choice} value=${choice}>${name}</option>`)}</select>`;
  }
  const more = { id, value, onInput: onChange, autocomplete: "off", spellcheck: false, "aria-invalid": fault !== null, "aria-describedby": fault ? `${id}-fault` : undefined };
  return html`${lines ? html`<textarea ...${more} rows=${lines} class="mono"></textarea>` : html`<input ...${more} />`}
    ${fault && html`<span class="fault" id=${`${id}-fault`}>${fault}</span>`}`;
}
