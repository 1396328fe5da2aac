// Line charts over time, drawn by uPlot, which is loaded with the first chart.

import { isDark, timeZoneSetting } from "../data/settings.js";
import { formatCompactNumber } from "../data/numbers.js";
import { formatTimeOfDay } from "../data/time.js";
import { html, useEffect, useRef } from "./ui.js";

/** @typedef {{name: string, tone: "accent" | "good" | "bad" | "warn" | "muted", fill?: boolean}} ChartLine */

/** Steps of the vertical axis, so that no label needs two decimals. */
const AXIS_STEPS = [-1, 0, 1, 2, 3, 4, 5, 6, 7, 8].flatMap((power) => [1, 2, 5].map((step) => Number(`${step}e${power}`)));

/** @type {Promise<any> | null} */
let uPlotPromise = null;

function loadUPlot() {
  uPlotPromise ??= new Promise((resolve, reject) => {
    const sheet = document.createElement("link");
    sheet.rel = "stylesheet";
    sheet.href = new URL("../vendor/uplot.css", import.meta.url).href;
    const script = document.createElement("script");
    script.src = new URL("../vendor/uplot.js", import.meta.url).href;
    script.onload = () => resolve(/** @type {any} */ (window).uPlot);
    script.onerror = () => {
      uPlotPromise = null;
      reject(new Error("The charts could not be loaded."));
    };
    document.head.append(sheet, script);
  });
  return uPlotPromise;
}

/** @param {string} name */
function readThemeColour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

/** `data` has the times in milliseconds, then the numbers of each line; null is a gap. `label` is the text alternative.
 * @param {{lines: ChartLine[], data: [number[], ...(number | null)[][]], label: string, height?: number, formatValue?: (value: number) => string}} props */
export function LineChart({ lines, data, label, height = 180, formatValue = formatCompactNumber }) {
  const container = useRef(/** @type {HTMLDivElement | null} */ (null));
  const chart = useRef(/** @type {any} */ (null));
  const latestData = useRef(data);
  latestData.current = data;
  const names = lines.map((line) => line.name).join("|");
  const themeAndZone = `${isDark.value} ${timeZoneSetting.value}`;

  useEffect(() => {
    const element = container.current;
    if (!element) return undefined;
    let isUnmounted = false;
    /** @type {ResizeObserver | undefined} */
    let resizeObserver;
    loadUPlot().then((uPlot) => {
      if (isUnmounted) return;
      chart.current = new uPlot(chartOptions(uPlot, lines, element.clientWidth, height, formatValue), latestData.current, element);
      resizeObserver = new ResizeObserver(() => chart.current?.setSize({ width: element.clientWidth, height }));
      resizeObserver.observe(element);
    }).catch(() => {});
    return () => {
      isUnmounted = true;
      resizeObserver?.disconnect();
      chart.current?.destroy();
      chart.current = null;
    };
  }, [names, themeAndZone, height]);

  useEffect(() => {
    chart.current?.setData(data);
  }, [data]);

  return html`<figure class="chart">
    <figcaption class="legend">${lines.map((line) => html`<span key=${line.name} class=${`legend-key ${line.tone}`}>${line.name}</span>`)}</figcaption>
    <div class="plot" role="img" aria-label=${label} ref=${container} style=${{ minHeight: `${height}px` }}></div>
  </figure>`;
}

/** @param {any} uPlot @param {ChartLine[]} lines @param {number} width @param {number} height @param {(value: number) => string} formatValue */
function chartOptions(uPlot, lines, width, height, formatValue) {
  const axis = { stroke: readThemeColour("text-faint"), grid: { stroke: readThemeColour("line"), width: 1 }, ticks: { show: false }, font: "11px system-ui" };
  return {
    width,
    height,
    ms: 1,
    legend: { show: false },
    // Space on the right for half of the last time label.
    padding: [8, 26, 0, 0],
    cursor: { y: false, points: { size: 6 } },
    scales: {
      // At least two minutes, so that a new line grows from the right and does not jump.
      x: { range: (/** @type {any} */ _, /** @type {number | null} */ from, /** @type {number | null} */ to) => {
        const end = to ?? Date.now();
        return [Math.min(from ?? end, end - 120_000), end];
      } },
      y: { range: (/** @type {any} */ _, /** @type {number} */ __, /** @type {number} */ top) => [0, Math.max(1, top * 1.15)] },
    },
    axes: [
      { ...axis, space: 90, size: 26, values: (/** @type {any} */ _, /** @type {number[]} */ times) => times.map(formatTimeOfDay) },
      { ...axis, size: 48, incrs: AXIS_STEPS, values: (/** @type {any} */ _, /** @type {number[]} */ values) => values.map(formatValue) },
    ],
    series: [
      {},
      ...lines.map(({ name, tone, fill }) => ({
        label: name,
        stroke: readThemeColour(tone),
        width: 1.5,
        fill: fill ? `color-mix(in srgb, ${readThemeColour(tone)} 12%, transparent)` : undefined,
        points: { show: false },
        paths: uPlot.paths.linear(),
      })),
    ],
  };
}
