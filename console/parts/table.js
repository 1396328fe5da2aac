// Tables of any length, worked with the mouse or with j, k, x and Enter.

import { useShortcuts } from "../shell/keys.js";
import { useVirtualRows } from "./virtual-rows.js";
import { classNames, html, useEffect, useLayoutEffect, useRef, useState } from "./ui.js";

/** @typedef {import("./ui.js").Children} Children */

/** A column. One that is not `narrow` gives way on small screens; `grow` takes what room is left.
 * @template T
 * @typedef {{name: string, title: string, cell: (row: T) => Children, width?: number, grow?: number, right?: boolean,
 *   narrow?: boolean, hidden?: boolean}} Column */

/** Rows that are chosen, by their ids.
 * @typedef {{chosen: Set<string>, onChange: (chosen: Set<string>) => void}} RowSelection */

const ROW_HEIGHT = 32;

/** @template T
 * @typedef {object} TableProps
 * @property {string} label what it is a table of
 * @property {Column<T>[]} columns
 * @property {T[]} rows
 * @property {(row: T) => string} id
 * @property {(row: T) => void} [onOpen] Enter, or a click on the row beside its links
 * @property {RowSelection} [choice] lets rows be chosen, with x or by their boxes
 * @property {() => void} [onEnd] the last row comes into sight: more can be read
 * @property {(first: number) => void} [onScroll] tells which row is the first that is there, whenever that changes
 * @property {(row: T) => string | false | undefined} [tone] a class for the row
 * @property {Children} [empty] stands in the place of rows
 * @property {boolean} [tall] takes what room the screen has and scrolls by itself
 * @property {number} [rowHeight]
 * @property {boolean} [keys] whether j and k work here; one table of a screen has them
 */

/** @template T
 * @param {TableProps<T>} props */
export function Table({ label, columns, rows, id, onOpen, choice, onEnd, onScroll, tone, empty, tall = false, rowHeight = ROW_HEIGHT, keys = true }) {
  const [current, setCurrent] = useState(/** @type {string | null} */ (null));
  const { box, from, to, seek } = useVirtualRows({ count: rows.length, height: rowHeight });
  const shown = columns.filter((column) => !column.hidden);

  const end = useRef(onEnd);
  end.current = onEnd;
  const near = rows.length > 0 && to >= rows.length - 20;
  useEffect(() => {
    if (near) end.current?.();
  }, [near, rows.length]);

  useEffect(() => onScroll?.(from), [from]);

  // Whoever goes back finds the row again that they went from.
  const left = useRef(keys ? history.state?.row : undefined);
  useLayoutEffect(() => {
    if (!left.current || !rows.length) return;
    const index = rows.findIndex((row) => id(row) === left.current);
    left.current = undefined;
    if (index < 0) return;
    setCurrent(id(rows[index]));
    seek(index);
  }, [rows.length]);
  /** @param {string} row */
  const leave = (row) => {
    if (keys) history.replaceState({ ...history.state, row }, "");
  };

  const at = () => rows.findIndex((row) => id(row) === current);
  /** @param {number} step */
  const move = (step) => {
    if (!rows.length) return;
    const next = Math.max(0, Math.min(rows.length - 1, at() + step));
    setCurrent(id(rows[next]));
    seek(next);
    // Enter is for the row from now on, and not for what was pressed before.
    box.current?.focus({ preventScroll: true });
  };
  useShortcuts(keys ? {
    j: { what: "Next row", run: () => move(1) },
    k: { what: "Previous row", run: () => move(at() < 0 ? 1 : -1) },
    ...(onOpen && { Enter: { what: "Open the row", run: () => { const row = rows[at()]; if (row) { leave(id(row)); onOpen(row); } }, when: () => at() >= 0 } }),
    ...(choice && { x: { what: "Select the row", run: () => { if (current !== null) toggle(current); } } }),
  } : {});

  /** @param {string} one */
  const toggle = (one) => {
    if (!choice) return;
    const next = new Set(choice.chosen);
    if (!next.delete(one)) next.add(one);
    choice.onChange(next);
  };
  const all = choice !== undefined && rows.length > 0 && rows.every((row) => choice.chosen.has(id(row)));
  const some = choice !== undefined && !all && choice.chosen.size > 0;

  /** @param {T} row @param {number} index */
  const line = (row, index) => {
    const key = id(row);
    const chosen = choice?.chosen.has(key);
    return html`<tr key=${key} aria-rowindex=${index + 2} aria-selected=${choice ? chosen : undefined}
      class=${classNames(key === current && "current", chosen && "chosen", onOpen && "opens", tone?.(row))}
      onClickCapture=${() => leave(key)} onClick=${(/** @type {MouseEvent} */ event) => open(event, row)}>
      ${choice && html`<td class="choose"><input type="checkbox" aria-label=${`Select ${key}`} checked=${chosen} onChange=${() => toggle(key)} /></td>`}
      ${shown.map((column) => html`<td key=${column.name} class=${cellClass(column)}>${column.cell(row)}</td>`)}
    </tr>`;
  };
  /** @param {MouseEvent} event @param {T} row */
  const open = (event, row) => {
    const target = /** @type {Element} */ (event.target);
    if (target.closest("a, button, input, label, summary") || getSelection()?.toString()) return;
    setCurrent(id(row));
    onOpen?.(row);
  };

  return html`<div class=${classNames("table-box", tall && "tall")} ref=${box} tabindex="0" role="region" aria-label=${label}>
    <table aria-rowcount=${rows.length + 1}>
      <colgroup>
        ${choice && html`<col class="choose" />`}
        ${shown.map((column) => html`<col key=${column.name} style=${columnStyle(column, shown)} class=${classNames(!column.width && "grow", !column.narrow && "wide-only")} />`)}
      </colgroup>
      <thead><tr aria-rowindex="1">
        ${choice && html`<th class="choose" scope="col"><input type="checkbox" aria-label="Select all rows shown"
          checked=${all} indeterminate=${some}
          onChange=${() => choice.onChange(all ? new Set() : new Set(rows.map(id)))} /></th>`}
        ${shown.map((column) => html`<th key=${column.name} scope="col" class=${cellClass(column)}>${column.title}</th>`)}
      </tr></thead>
      <tbody>
        ${from > 0 && html`<tr key="above" class="room" aria-hidden="true"><td style=${{ height: `${from * rowHeight}px` }}></td></tr>`}
        ${rows.slice(from, to).map((row, index) => line(row, from + index))}
        ${to < rows.length && html`<tr key="below" class="room" aria-hidden="true"><td style=${{ height: `${(rows.length - to) * rowHeight}px` }}></td></tr>`}
      </tbody>
    </table>
    ${rows.length === 0 && empty}
  </div>`;
}

/** Columns that grow share what the others leave: all of them, or on small screens those that stay.
 * @param {Column<any>} column @param {Column<any>[]} columns */
function columnStyle({ width, grow = 1, narrow }, columns) {
  if (width) return { width: `${width}px` };
  /** @param {Column<any>[]} list */
  const part = (list) => `${(100 * grow) / list.reduce((sum, one) => sum + (one.width ? 0 : one.grow ?? 1), 0)}%`;
  return { "--part": part(columns), "--small-part": narrow ? part(columns.filter((one) => one.narrow)) : "0%" };
}

/** @param {Column<any>} column */
function cellClass({ right, narrow }) {
  return classNames(right && "right", !narrow && "wide-only");
}
