// Virtual tables of any length, operated with the mouse or with j, k, x and Enter.

import { useShortcuts } from "../shell/shortcuts.js";
import { useVirtualRows } from "./virtual-rows.js";
import { classNames, html, useEffect, useLayoutEffect, useRef, useState } from "./ui.js";

/** @typedef {import("./ui.js").Children} Children */

/** A column. Below 720 px only `onSmallScreens` columns are shown; `grow` columns share the free width.
 * @template T
 * @typedef {{name: string, title: string, cell: (row: T) => Children, width?: number, grow?: number, alignRight?: boolean,
 *   onSmallScreens?: boolean, hidden?: boolean}} Column */

/** Ids of the selected rows.
 * @typedef {{selected: Set<string>, onChange: (selected: Set<string>) => void}} RowSelection */

const ROW_HEIGHT = 32;

/** @template T
 * @typedef {object} TableProps
 * @property {string} label accessible name
 * @property {Column<T>[]} columns
 * @property {T[]} rows
 * @property {(row: T) => string} id
 * @property {(row: T) => void} [onOpen] called on Enter, or on a click outside of links
 * @property {RowSelection} [selection] lets rows be selected, with x or a checkbox
 * @property {() => void} [onEnd] called when the last row becomes visible, to load more
 * @property {(first: number) => void} [onScroll] called with the index of the first rendered row when it changes
 * @property {(row: T) => string | false | undefined} [rowClass] a class for the row
 * @property {Children} [empty] shown if there are no rows
 * @property {boolean} [fill] fills the screen and scrolls
 * @property {number} [rowHeight]
 * @property {boolean} [hasShortcuts] whether j, k, x and Enter work here; for one table of a screen
 */

/** @template T
 * @param {TableProps<T>} props */
export function Table({ label, columns, rows, id, onOpen, selection, onEnd, onScroll, rowClass, empty, fill = false, rowHeight = ROW_HEIGHT, hasShortcuts = true }) {
  const [currentId, setCurrentId] = useState(/** @type {string | null} */ (null));
  const { box, from, to, scrollToRow } = useVirtualRows({ count: rows.length, height: rowHeight });
  const visibleColumns = columns.filter((column) => !column.hidden);

  const latestOnEnd = useRef(onEnd);
  latestOnEnd.current = onEnd;
  const isNearEnd = rows.length > 0 && to >= rows.length - 20;
  useEffect(() => {
    if (isNearEnd) latestOnEnd.current?.();
  }, [isNearEnd, rows.length]);

  useEffect(() => onScroll?.(from), [from]);

  // After going back, the row that was opened is the current one again.
  const restoreRow = useRef(hasShortcuts ? history.state?.row : undefined);
  useLayoutEffect(() => {
    if (!restoreRow.current || !rows.length) return;
    const index = rows.findIndex((row) => id(row) === restoreRow.current);
    restoreRow.current = undefined;
    if (index < 0) return;
    setCurrentId(id(rows[index]));
    scrollToRow(index);
  }, [rows.length]);
  /** @param {string} row */
  const storeOpenedRow = (row) => {
    if (hasShortcuts) history.replaceState({ ...history.state, row }, "");
  };

  const currentIndex = () => rows.findIndex((row) => id(row) === currentId);
  /** @param {number} step */
  const moveCurrentRow = (step) => {
    if (!rows.length) return;
    const nextIndex = Math.max(0, Math.min(rows.length - 1, currentIndex() + step));
    setCurrentId(id(rows[nextIndex]));
    scrollToRow(nextIndex);
    // Enter must open the row, and not press the button that had the focus.
    box.current?.focus({ preventScroll: true });
  };
  useShortcuts(hasShortcuts ? {
    j: { title: "Next row", run: () => moveCurrentRow(1) },
    k: { title: "Previous row", run: () => moveCurrentRow(currentIndex() < 0 ? 1 : -1) },
    ...(onOpen && { Enter: { title: "Open the row", run: () => { const row = rows[currentIndex()]; if (row) { storeOpenedRow(id(row)); onOpen(row); } }, when: () => currentIndex() >= 0 } }),
    ...(selection && { x: { title: "Select the row", run: () => { if (currentId !== null) toggleSelected(currentId); } } }),
  } : {});

  /** @param {string} rowId */
  const toggleSelected = (rowId) => {
    if (!selection) return;
    const next = new Set(selection.selected);
    if (!next.delete(rowId)) next.add(rowId);
    selection.onChange(next);
  };
  const allSelected = selection !== undefined && rows.length > 0 && rows.every((row) => selection.selected.has(id(row)));
  const someSelected = selection !== undefined && !allSelected && selection.selected.size > 0;

  /** @param {T} row @param {number} index */
  const renderRow = (row, index) => {
    const key = id(row);
    const isSelected = selection?.selected.has(key);
    return html`<tr key=${key} aria-rowindex=${index + 2} aria-selected=${selection ? isSelected : undefined}
      class=${classNames(key === currentId && "current", isSelected && "selected", onOpen && "clickable", rowClass?.(row))}
      onClickCapture=${() => storeOpenedRow(key)} onClick=${(/** @type {MouseEvent} */ event) => openRow(event, row)}>
      ${selection && html`<td class="select-cell"><input type="checkbox" aria-label=${`Select ${key}`} checked=${isSelected} onChange=${() => toggleSelected(key)} /></td>`}
      ${visibleColumns.map((column) => html`<td key=${column.name} class=${cellClass(column)}>${column.cell(row)}</td>`)}
    </tr>`;
  };
  /** @param {MouseEvent} event @param {T} row */
  const openRow = (event, row) => {
    const target = /** @type {Element} */ (event.target);
    if (target.closest("a, button, input, label, summary") || getSelection()?.toString()) return;
    setCurrentId(id(row));
    onOpen?.(row);
  };

  return html`<div class=${classNames("table-box", fill && "fill")} ref=${box} tabindex="0" role="region" aria-label=${label}>
    <table aria-rowcount=${rows.length + 1}>
      <colgroup>
        ${selection && html`<col class="select-cell" />`}
        ${visibleColumns.map((column) => html`<col key=${column.name} style=${columnStyle(column, visibleColumns)} class=${classNames(!column.width && "grow", !column.onSmallScreens && "wide-only")} />`)}
      </colgroup>
      <thead><tr aria-rowindex="1">
        ${selection && html`<th class="select-cell" scope="col"><input type="checkbox" aria-label="Select all rows shown"
          checked=${allSelected} indeterminate=${someSelected}
          onChange=${() => selection.onChange(allSelected ? new Set() : new Set(rows.map(id)))} /></th>`}
        ${visibleColumns.map((column) => html`<th key=${column.name} scope="col" class=${cellClass(column)}>${column.title}</th>`)}
      </tr></thead>
      <tbody>
        ${from > 0 && html`<tr key="above" class="spacer-row" aria-hidden="true"><td style=${{ height: `${from * rowHeight}px` }}></td></tr>`}
        ${rows.slice(from, to).map((row, index) => renderRow(row, from + index))}
        ${to < rows.length && html`<tr key="below" class="spacer-row" aria-hidden="true"><td style=${{ height: `${(rows.length - to) * rowHeight}px` }}></td></tr>`}
      </tbody>
    </table>
    ${rows.length === 0 && empty}
  </div>`;
}

/** `grow` columns share the free width: all of them, or on small screens only those that are shown there.
 * @param {Column<any>} column @param {Column<any>[]} columns */
function columnStyle({ width, grow = 1, onSmallScreens }, columns) {
  if (width) return { width: `${width}px` };
  /** @param {Column<any>[]} list */
  const widthShare = (list) => `${(100 * grow) / list.reduce((sum, column) => sum + (column.width ? 0 : column.grow ?? 1), 0)}%`;
  return { "--column-share": widthShare(columns), "--small-column-share": onSmallScreens ? widthShare(columns.filter((column) => column.onSmallScreens)) : "0%" };
}

/** @param {Column<any>} column */
function cellClass({ alignRight, onSmallScreens }) {
  return classNames(alignRight && "right", !onSmallScreens && "wide-only");
}
