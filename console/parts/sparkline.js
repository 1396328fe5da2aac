// A small line chart without axes.

import { html } from "./ui.js";

/** Nulls are gaps.
 * @param {{values: (number | null)[], width?: number, height?: number, label: string, maxValue?: number}} props */
export function Sparkline({ values, width = 96, height = 24, label, maxValue }) {
  const top = Math.max(maxValue ?? 0, ...values.map((value) => value ?? 0), 1e-9);
  const step = values.length > 1 ? width / (values.length - 1) : 0;
  let command = "M";
  const path = values.map((value, index) => {
    if (value === null) {
      command = "M";
      return "";
    }
    const point = `${command}${(index * step).toFixed(1)} ${(height - 1.5 - (value / top) * (height - 3)).toFixed(1)}`;
    command = "L";
    return point;
  }).join("");
  return html`<svg class="sparkline" width=${width} height=${height} viewBox=${`0 0 ${width} ${height}`} role="img" aria-label=${label}>
    <path d=${path} />
  </svg>`;
}
