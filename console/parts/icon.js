// Icons on a grid of 16. They accompany a label and are hidden from screen readers.

import { html } from "./ui.js";

const ICONS = {
  pulse: "M1.5 8h3l2-5 3 10 2-5h3",
  stream: "M2 4h12M2 8h8M2 12h5M12.5 9.5v4M10.5 11.5h4",
  object: "M8 1.5 14 5v6l-6 3.5L2 11V5zM2 5l6 3.5L14 5M8 8.5v6",
  task: "M2.5 3.5h11v9h-11zM5 8l2 2 4-4",
  failure: "M8 2 14.5 13.5h-13zM8 6.5v3.5M8 11.8v.2",
  handler: "M8 5.5a2.5 2.5 0 1 0 0 5 2.5 2.5 0 0 0 0-5M8 1.5v2M8 12.5v2M1.5 8h2M12.5 8h2M3.4 3.4l1.4 1.4M11.2 11.2l1.4 1.4M12.6 3.4l-1.4 1.4M4.8 11.2l-1.4 1.4",
  schedule: "M8 2a6 6 0 1 0 0 12A6 6 0 0 0 8 2M8 4.5V8l2.5 1.5",
  chain: "M1.5 5.5h4v5h-4zM10.5 1.5h4v4h-4zM10.5 10.5h4v4h-4zM5.5 8h2.5V3.5h2.5M8 8v4.5h2.5",
  order: "M3.5 11a1.5 1.5 0 1 0 0 3 1.5 1.5 0 0 0 0-3M5 12.5h4.5v-9H13M10.8 1.2 13.2 3.5 10.8 5.8",
  node: "M2 2.5h12v4H2zM2 9.5h12v4H2zM4.5 4.5h1M4.5 11.5h1",
  configuration: "M2 4.5h7M12 4.5h2M2 11.5h2M7 11.5h7M9 3v3h3V3zM4 10v3h3v-3z",
  audit: "M3.5 1.5h6l3 3v10h-9zM9 1.5V5h3.5M5.5 8h5M5.5 11h5",
  search: "M7 2.5a4.5 4.5 0 1 0 0 9 4.5 4.5 0 0 0 0-9M10.5 10.5l4 4",
  close: "M3.5 3.5l9 9M12.5 3.5l-9 9",
  copy: "M5.5 5.5h8v8h-8zM2.5 10.5v-8h8",
  down: "M3.5 6 8 10.5 12.5 6",
  up: "M8 13V3M4 7l4-4 4 4",
  pause: "M5 3v10M11 3v10",
  play: "M4.5 2.5v11l9-5.5z",
  retry: "M13.5 8a5.5 5.5 0 1 1-1.7-4M13.5 1.5v3h-3",
  stop: "M3.5 3.5h9v9h-9z",
  block: "M8 2a6 6 0 1 0 0 12A6 6 0 0 0 8 2M3.8 3.8l8.4 8.4",
  download: "M8 2v8M4.5 6.5 8 10l3.5-3.5M2.5 13.5h11",
  sun: "M8 5a3 3 0 1 0 0 6 3 3 0 0 0 0-6M8 1v1.5M8 13.5V15M1 8h1.5M13.5 8H15M3 3l1 1M12 12l1 1M13 3l-1 1M4 12l-1 1",
  moon: "M13.5 9.5A6 6 0 0 1 6.5 2.5a6 6 0 1 0 7 7",
  menu: "M2 4h12M2 8h12M2 12h12",
  signOut: "M6 2.5H2.5v11H6M6.5 8h7.5M11 5l3 3-3 3",
  filter: "M2 3h12L9.5 8.5v5l-3-1.5V8.5z",
};

/** @typedef {keyof typeof ICONS} IconName */

/** @param {{name: IconName, size?: number}} props */
export function Icon({ name, size = 16 }) {
  return html`<svg class="icon" width=${size} height=${size} viewBox="0 0 16 16" aria-hidden="true" focusable="false">
    <path d=${ICONS[name]} />
  </svg>`;
}
