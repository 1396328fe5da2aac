// Progress of the redrives of this node: active ones, and recently ended ones.

import { api } from "../data/api.js";
import { useLiveData } from "../data/live-data.js";
import { describeRedriveScope, stopRedrive } from "../data/redrives.js";
import { hasRole } from "../data/session.js";
import { toMillis, now } from "../data/time.js";
import { ProgressRow } from "./progress.js";
import { runWithToast } from "./actions.js";
import { html, signal, useEffect } from "./ui.js";

/** @typedef {import("../data/api-types.js").Redrive} Redrive */

/** How long an ended redrive stays visible. */
const ENDED_REDRIVE_VISIBLE_MS = 120_000;

/** Ids of redrives that the user closed. */
const dismissedRedriveIds = signal(/** @type {Set<string>} */ (new Set()));
const refreshRequestCount = signal(0);

/** Reads the redrives again after one was started. */
export function refreshRedrives() {
  refreshRequestCount.value += 1;
}

/** The redrives of the last read. @type {Redrive[]} */
let lastReadRedrives = [];

/** @param {Redrive} redrive */
function isActiveRedrive({ state }) {
  return state === "running" || state === "canary";
}

export function RedriveProgress() {
  const live = useLiveData({
    read: async (signal) => {
      const response = /** @type {{redrives: Redrive[]}} */ (await api.get("/api/v1/redrives", { signal }));
      lastReadRedrives = response.redrives;
      return response;
    },
    // Redrives are not on the stream: they are polled often while one is active.
    get pollInterval() {
      return lastReadRedrives.some(isActiveRedrive) ? 700 : 10_000;
    },
    minInterval: 300,
  }, []);
  useEffect(() => {
    if (refreshRequestCount.value) live.reload();
  }, [refreshRequestCount.value]);
  const visibleRedrives = (live.data?.redrives ?? []).filter((redrive) => isActiveRedrive(redrive)
    || (!dismissedRedriveIds.value.has(redrive.id) && now.value - (toMillis(redrive.ended_at) ?? 0) < ENDED_REDRIVE_VISIBLE_MS));
  if (visibleRedrives.length === 0) return null;
  return html`<section class="progress-list" aria-label="Redrives">
    ${visibleRedrives.map((redrive) => html`<${RedriveRow} key=${redrive.id} redrive=${redrive} onChange=${live.reload} />`)}
  </section>`;
}

/** @param {{redrive: Redrive, onChange: () => void}} props */
function RedriveRow({ redrive, onChange }) {
  const { id, state, stop_reason, by, filter, matched, retried, refused, rate, canary } = redrive;
  const isRunning = isActiveRedrive(redrive);
  const scopeText = describeRedriveScope(filter);
  const optionsText = [rate && `at most ${rate}`, canary && `${canary} first`, `by ${by}`].filter(Boolean).join(", ");
  const tone = isRunning ? "busy" : state === "done" ? (refused ? "warn" : "good") : "bad";
  const note = [
    state === "canary" && "waiting for the canary tasks",
    refused > 0 && `${refused} could not be run again`,
    state === "done" && "done",
    state === "stopped" && `stopped: ${stop_reason}`,
  ].filter(Boolean).join("; ");
  const stop = () => runWithToast(() => stopRedrive(id), "The redrive is stopped. Tasks that it queued stay queued.").then(onChange);
  return html`<${ProgressRow} title=${html`Redrive of ${scopeText} <span class="faint">${optionsText}</span>`} label=${`Redrive of ${scopeText}`} tone=${tone}
    done=${retried + refused} total=${matched} note=${note}
    onStop=${isRunning && hasRole("operator") ? stop : undefined}
    onClose=${isRunning ? undefined : () => { dismissedRedriveIds.value = new Set(dismissedRedriveIds.value).add(id); }} />`;
}
