// Status badges: an icon and a word, so that colour is never the only sign.

import { classNames, html } from "./ui.js";

/** @typedef {"good" | "bad" | "warn" | "busy" | "idle" | "off"} Tone */

/** An icon for each tone, so that it can be recognized without colours. @type {Record<Tone, string>} */
const TONE_ICON_PATHS = {
  good: "M3.5 8.5 6.5 11.5 12.5 4.5",
  bad: "M4 4l8 8M12 4l-8 8",
  warn: "M8 3v6M8 12.3v.4",
  busy: "M8 3a5 5 0 0 1 0 10z",
  idle: "",
  off: "M4 8h8",
};

/** @param {{tone: Tone}} props */
export function ToneIcon({ tone }) {
  return html`<svg class=${classNames("status-icon", tone)} width="14" height="14" viewBox="0 0 16 16" aria-hidden="true">
    <circle cx="8" cy="8" r="6.5" />
    <path d=${TONE_ICON_PATHS[tone]} />
  </svg>`;
}

/** @param {{tone: Tone, children?: import("./ui.js").Children, title?: string}} props */
export function Badge({ tone, children, title }) {
  return html`<span class=${classNames("badge", tone)} title=${title}><${ToneIcon} tone=${tone} /><span>${children}</span></span>`;
}

/** Labels of task statuses. @type {Record<string, [Tone, string]>} */
const TASK_STATUS_LABELS = {
  SCHEDULED: ["idle", "Waiting"],
  RUNNING: ["busy", "Running"],
  SUCCESS: ["good", "Succeeded"],
  FAILED: ["bad", "Failed"],
  CANCELED: ["off", "Cancelled"],
};

/** The status of a task. `state` adds detail: the handler is missing, or the task is retried.
 * @param {{status: string, state?: string, attempt?: number}} props */
export function TaskStatusBadge({ status, state, attempt = 0 }) {
  if (state === "missing") return html`<${Badge} tone="warn" title="Its handler is no longer defined">Missing<//>`;
  const [tone, label] = TASK_STATUS_LABELS[status] ?? ["idle", status];
  const isRetrying = status === "SCHEDULED" && attempt > 0;
  return html`<${Badge} tone=${tone} title=${state && `state ${state}`}>${isRetrying ? "Retrying" : label}<//>`;
}

/** Statuses with their labels, for a filter. */
export const TASK_STATUS_CHOICES = Object.entries(TASK_STATUS_LABELS).map(([status, [, label]]) => /** @type {[string, string]} */ ([status, label]));
