// Filters: fields whose values are in the address, so that a filtered view can be shared as a link.

import { fromDateTimeInputValue, toDateTimeInputValue } from "../data/time.js";
import { setQuery } from "../shell/router.js";
import { Button } from "./button.js";
import { html, useEffect, useId, useState } from "./ui.js";

/** A field of a filter. With `choices` it is a select; each choice is a value, or a value and its label. With `time`
 * it is a time in the selected zone. With `advanced` it is hidden until "More filters" is clicked.
 * @typedef {{name: string, label: string, hint?: string, choices?: (string | [string, string])[], suggestions?: string[],
 *   width?: number, time?: boolean, advanced?: boolean}} FilterField */

/** @param {{fields: FilterField[], query: Record<string, string>, children?: import("./ui.js").Children}} props */
export function FilterBar({ fields, query, children }) {
  const activeFields = fields.filter((field) => query[field.name]);
  const cleared = Object.fromEntries(fields.map((field) => [field.name, null]));
  const [showAdvanced, setShowAdvanced] = useState(false);
  const isExpanded = showAdvanced || activeFields.some((field) => field.advanced);
  return html`<form class="filters" role="search" aria-label="Filters" onSubmit=${(/** @type {Event} */ event) => event.preventDefault()}>
    ${fields.filter((field) => isExpanded || !field.advanced).map((field) => (field.choices
      ? html`<${SelectFilter} key=${field.name} field=${field} value=${query[field.name] ?? ""} />`
      : field.time ? html`<${TimeFilter} key=${field.name} field=${field} value=${query[field.name] ?? ""} />`
      : html`<${TextFilter} key=${field.name} field=${field} value=${query[field.name] ?? ""} />`))}
    ${!isExpanded && fields.some((field) => field.advanced) && html`<${Button} small kind="quiet" icon="filter" onClick=${() => setShowAdvanced(true)}>More filters<//>`}
    ${activeFields.length > 0 && html`<${Button} small kind="quiet" icon="close" onClick=${() => setQuery({ ...cleared, cursor: null })}>Clear filters<//>`}
    ${children}
  </form>`;
}

/** @param {{field: FilterField, value: string}} props */
function SelectFilter({ field, value }) {
  const id = useId();
  const choices = (field.choices ?? []).map((choice) => (typeof choice === "string" ? [choice, choice] : choice));
  return html`<label class="filter" for=${id}><span>${field.label}</span>
    <select id=${id} value=${value} style=${field.width && { width: `${field.width}px` }} onChange=${(/** @type {Event} */ event) =>
      setQuery({ [field.name]: /** @type {HTMLSelectElement} */ (event.target).value }, { replace: false })}>
      <option value="">Any</option>
      ${choices.map(([choice, label]) => html`<option key=${choice} value=${choice}>${label}</option>`)}
    </select></label>`;
}

/** Applies shortly after the last key press.
 * @param {{field: FilterField, value: string}} props */
function TextFilter({ field, value }) {
  const id = useId();
  const [text, setText] = useState(value);
  useEffect(() => setText(value), [value]);
  useEffect(() => {
    if (text.trim() === value) return undefined;
    const timer = setTimeout(() => setQuery({ [field.name]: text.trim() }), 350);
    return () => clearTimeout(timer);
  }, [text]);
  return html`<label class="filter" for=${id}><span>${field.label}</span>
    <input id=${id} value=${text} placeholder=${field.hint} autocomplete="off" spellcheck=${false} maxlength="1024"
      list=${field.suggestions && `${id}-list`} style=${field.width && { width: `${field.width}px` }}
      onInput=${(/** @type {Event} */ event) => setText(/** @type {HTMLInputElement} */ (event.target).value)} />
    ${field.suggestions && html`<datalist id=${`${id}-list`}>${field.suggestions.map((suggestion) => html`<option key=${suggestion} value=${suggestion} />`)}</datalist>`}
  </label>`;
}

/** @param {{field: FilterField, value: string}} props */
function TimeFilter({ field, value }) {
  const id = useId();
  return html`<label class="filter" for=${id}><span>${field.label}</span>
    <input id=${id} type="datetime-local" step="1" value=${toDateTimeInputValue(value)} onChange=${(/** @type {Event} */ event) =>
      setQuery({ [field.name]: fromDateTimeInputValue(/** @type {HTMLInputElement} */ (event.target).value) }, { replace: false })} /></label>`;
}
