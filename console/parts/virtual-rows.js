// Virtual lists: only visible rows are in the page.

import { useEffect, useLayoutEffect, useRef, useState } from "./ui.js";

/** Rows rendered beyond the visible edge. */
const OVERSCAN_ROWS = 8;

/** Returns the visible rows of a scrolled box. All rows have the same height.
 * @param {{count: number, height: number}} rows
 * @returns {{box: {current: HTMLDivElement | null}, from: number, to: number, scrollToRow: (index: number) => void}} */
export function useVirtualRows({ count, height }) {
  const box = useRef(/** @type {HTMLDivElement | null} */ (null));
  const [range, setRange] = useState({ from: 0, to: Math.min(count, 60) });
  const measure = () => {
    const element = box.current;
    if (!element) return;
    const from = Math.max(0, Math.floor(element.scrollTop / height) - OVERSCAN_ROWS);
    const to = Math.ceil((element.scrollTop + element.clientHeight) / height) + OVERSCAN_ROWS;
    setRange((previous) => (previous.from === from && previous.to === to ? previous : { from, to }));
  };
  useLayoutEffect(measure, [count, height]);
  useEffect(() => {
    const element = box.current;
    if (!element) return undefined;
    element.addEventListener("scroll", measure, { passive: true });
    const resizeObserver = new ResizeObserver(measure);
    resizeObserver.observe(element);
    return () => {
      element.removeEventListener("scroll", measure);
      resizeObserver.disconnect();
    };
  }, [height]);
  /** Scrolls as little as needed to show a row. @param {number} index */
  const scrollToRow = (index) => {
    const element = box.current;
    if (!element) return;
    const headerHeight = element.querySelector("thead")?.getBoundingClientRect().height ?? 0;
    const top = index * height;
    if (top < element.scrollTop) element.scrollTop = top;
    const visibleHeight = element.clientHeight - headerHeight - height;
    if (top > element.scrollTop + visibleHeight) element.scrollTop = top - visibleHeight;
  };
  return { box, from: Math.min(range.from, count), to: Math.min(range.to, count), scrollToRow };
}
