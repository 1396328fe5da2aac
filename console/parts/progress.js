// Progress of a long operation.

import { formatCount } from "../data/numbers.js";
import { Button } from "./button.js";
import { ToneIcon } from "./badge.js";
import { html } from "./ui.js";

/** One row: title, progress bar, and a stop button.
 * @param {{title: import("./ui.js").Children, label: string, tone: import("./badge.js").Tone, done: number, total: number,
 *   note?: import("./ui.js").Children, onStop?: () => void, onClose?: () => void}} props `label` is the title for screen readers */
export function ProgressRow({ title, label, tone, done, total, note, onStop, onClose }) {
  const fraction = total > 0 ? Math.min(1, done / total) : 0;
  return html`<div class="progress" role="group" aria-label=${label}>
    <${ToneIcon} tone=${tone} />
    <span class="progress-title">${title}</span>
    <span class="progress-bar" role="progressbar" aria-label=${label} aria-valuenow=${Math.round(fraction * 100)} aria-valuemin="0" aria-valuemax="100">
      <span class=${tone} style=${{ width: `${fraction * 100}%` }}></span></span>
    <span class="number">${formatCount(done)} of ${formatCount(total)}</span>
    ${note && html`<span class="progress-note soft">${note}</span>`}
    <span class="progress-buttons">
      ${onStop && html`<${Button} small icon="stop" onClick=${onStop}>Stop<//>`}
      ${onClose && html`<${Button} small kind="quiet" icon="close" label="Close" onClick=${onClose} />`}
    </span>
  </div>`;
}
