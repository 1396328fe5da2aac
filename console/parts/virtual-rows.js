// Long lists, of which only what can be seen is in the page.

import { useEffect, useLayoutEffect, useRef, useState } from "./ui.js";

/** Rows beyond the edge that are there before they are scrolled to. */
const OVERSCAN_ROWS = 8;

/** Which rows of a scrolled box can be seen. All rows have the same height.
 * @param {{count: number, height: number}} rows
 * @returns {{box: {current: HTMLDivElement | null}, from: number, to: number, seek: (index: number) => void}} */
export function useVirtualRows({ count, height }) {
  const box = useRef(/** @type {HTMLDivElement | null} */ (null));
  const [seen, setSeen] = useState({ from: 0, to: Math.min(count, 60) });
  const look = () => {
    const element = box.current;
    if (!element) return;
    const from = Math.max(0, Math.floor(element.scrollTop / height) - OVERSCAN_ROWS);
    const to = Math.ceil((element.scrollTop + element.clientHeight) / height) + OVERSCAN_ROWS;
    setSeen((before) => (before.from === from && before.to === to ? before : { from, to }));
  };
  useLayoutEffect(look, [count, height]);
  useEffect(() => {
    const element = box.current;
    if (!element) return undefined;
    element.addEventListener("scroll", look, { passive: true });
    const watch = new ResizeObserver(look);
    watch.observe(element);
    return () => {
      element.removeEventListener("scroll", look);
      watch.disconnect();
    };
  }, [height]);
  /** Scrolls as little as needed to show a row. @param {number} index */
  const seek = (index) => {
    const element = box.current;
    if (!element) return;
    const head = element.querySelector("thead")?.getBoundingClientRect().height ?? 0;
    const top = index * height;
    if (top < element.scrollTop) element.scrollTop = top;
    const room = element.clientHeight - head - height;
    if (top > element.scrollTop + room) element.scrollTop = top - room;
  };
  return { box, from: Math.min(seen.from, count), to: Math.min(seen.to, count), seek };
}
