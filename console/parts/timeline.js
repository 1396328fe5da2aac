// Bars over time in rows: attempts of a task, steps of an order.

import { formatDuration, formatDateTime, formatTimeOfDay, now } from "../data/time.js";
import { html, useEffect, useRef, useState } from "./ui.js";

/** @typedef {import("./badge.js").Tone} Tone */
/** A bar without an end lasts until now; one without a length is a mark.
 * @typedef {{from: number, to?: number | null, tone: Tone, title: string, onOpen?: () => void}} TimelineBar */
/** @typedef {{name: string, title?: string, bars: TimelineBar[]}} TimelineRow */

const ROW_HEIGHT = 26;
const AXIS_HEIGHT = 22;

/** @param {{rows: TimelineRow[], label: string, from?: number, to?: number, nameWidth?: number}} props `nameWidth` is
 * the width of the name column; times are in milliseconds */
export function Timeline({ rows, label, from, to, nameWidth = 140 }) {
  const box = useRef(/** @type {HTMLDivElement | null} */ (null));
  const [width, setWidth] = useState(600);
  useEffect(() => {
    const element = box.current;
    if (!element) return undefined;
    const resizeObserver = new ResizeObserver(() => setWidth(Math.max(240, element.clientWidth)));
    resizeObserver.observe(element);
    return () => resizeObserver.disconnect();
  }, []);
  const bars = rows.flatMap((row) => row.bars);
  const hasOpenBar = bars.some((bar) => bar.to === null || bar.to === undefined);
  const start = from ?? Math.min(...bars.map((bar) => bar.from));
  const end = to ?? Math.max(...bars.map((bar) => bar.to ?? bar.from), hasOpenBar ? now.value : 0);
  if (bars.length === 0) return html`<div ref=${box}></div>`;
  const span = Math.max(1, end - start);
  const left = Math.min(nameWidth, width * 0.35);
  const plotWidth = width - left - 12;
  /** @param {number} at */
  const timeToX = (at) => left + ((Math.min(Math.max(at, start), end) - start) / span) * plotWidth;
  const height = AXIS_HEIGHT + rows.length * ROW_HEIGHT + 4;
  return html`<div class="timeline" ref=${box}>
    <svg width=${width} height=${height} viewBox=${`0 0 ${width} ${height}`} role="group" aria-label=${label}>
      ${axisTickTimes(start, end, Math.max(2, Math.floor(plotWidth / 110))).map((at) => html`<g key=${at} class="tick" aria-hidden="true">
        <line x1=${timeToX(at)} x2=${timeToX(at)} y1=${AXIS_HEIGHT - 4} y2=${height} />
        <text x=${timeToX(at)} y=${12} text-anchor=${timeToX(at) > width - 50 ? "end" : "middle"}>${span < 60_000 ? `+${formatDuration(at - start)}` : formatTimeOfDay(at)}</text>
      </g>`)}
      ${rows.map((row, index) => html`<g key=${row.name} transform=${`translate(0 ${AXIS_HEIGHT + index * ROW_HEIGHT})`}>
        <text class="name" x="0" y=${ROW_HEIGHT / 2 + 4}><title>${row.title ?? row.name}</title>${truncate(row.name, left)}</text>
        ${row.bars.map((bar, barIndex) => html`<${BarShape} key=${barIndex} bar=${bar} x=${timeToX(bar.from)}
          width=${Math.max(3, timeToX(bar.to ?? now.value) - timeToX(bar.from))} />`)}
      </g>`)}
    </svg>
  </div>`;
}

/** @param {{bar: TimelineBar, x: number, width: number}} props */
function BarShape({ bar, x, width }) {
  const { from, to, tone, title, onOpen } = bar;
  const label = `${title}: ${formatDateTime(from)}${to === from ? "" : `, ${formatDuration((to ?? now.value) - from)}`}`;
  const rect = html`<rect class=${`bar ${tone}`} x=${x} y="5" width=${width} height=${ROW_HEIGHT - 10} rx="3"><title>${label}</title></rect>`;
  if (!onOpen) return html`<g role="img" aria-label=${label}>${rect}</g>`;
  /** @param {KeyboardEvent} event */
  const handleKeyDown = (event) => {
    if (event.key === "Enter") onOpen();
  };
  return html`<g role="button" tabindex="0" aria-label=${label} onClick=${onOpen} onKeyDown=${handleKeyDown} class="clickable">${rect}</g>`;
}

/** Round times between `from` and `to`, at most `maxTicks`.
 * @param {number} from @param {number} to @param {number} maxTicks */
function axisTickTimes(from, to, maxTicks) {
  const steps = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 3e4, 6e4, 3e5, 6e5, 1.8e6, 3.6e6, 1.08e7, 2.16e7, 4.32e7, 8.64e7, 6.048e8];
  const step = steps.find((step) => (to - from) / step <= maxTicks) ?? 6.048e8;
  const isShort = to - from < 60_000;
  const ticks = [];
  for (let at = isShort ? from : Math.ceil(from / step) * step; at <= to && ticks.length < 50; at += step) ticks.push(at);
  return ticks;
}

/** @param {string} name @param {number} width */
function truncate(name, width) {
  const maxLength = Math.max(6, Math.floor(width / 7) - 1);
  return name.length > maxLength ? `${name.slice(0, maxLength - 1)}…` : name;
}
