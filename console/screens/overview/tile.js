// A tile: a number with its name and recent history.

import { Sparkline } from "../../parts/sparkline.js";
import { classNames, html } from "../../parts/ui.js";

/** @param {{name: string, value: string, unit?: string, note?: string, isBad?: boolean, values?: (number | null)[]}}
 * props */
export function Tile({ name, value, unit, note, isBad = false, values }) {
  return html`<div class=${classNames("tile", isBad && "bad")}>
    <span class="tile-name">${name}</span>
    <span class="tile-value number">${value}${unit && html`<span class="tile-unit">${unit}</span>`}</span>
    ${values ? html`<${Sparkline} values=${values} label=${`${name} over the last two minutes`} />` : html`<span class="faint number">${note}</span>`}
  </div>`;
}
