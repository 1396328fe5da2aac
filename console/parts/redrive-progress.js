// The redrives of this node: those that go on, and those that ended while somebody looked.

import { api } from "../data/api.js";
import { useLiveData } from "../data/live-data.js";
import { describeScope, stopRedrive } from "../data/redrives.js";
import { hasRole } from "../data/session.js";
import { toMillis, now } from "../data/time.js";
import { Progress } from "./progress.js";
import { runWithToast } from "./toast.js";
import { html, signal, useEffect } from "./ui.js";

/** @typedef {import("../data/api-types.js").Redrive} Redrive */

/** For how long one that has ended is still shown. */
const SHOW_FINISHED_MS = 120_000;

/** Those that somebody put away. */
const dismissedIds = signal(/** @type {Set<string>} */ (new Set()));
const refreshRequests = signal(0);

/** One was begun: they are to be read now. */
export function refreshRedrives() {
  refreshRequests.value += 1;
}

/** As they were read last. @type {Redrive[]} */
let lastRedrives = [];

/** @param {Redrive} redrive */
function isActive({ state }) {
  return state === "running" || state === "canary";
}

export function RedriveProgress() {
  const followed = useLiveData({
    read: async (signal) => {
      const answer = /** @type {{redrives: Redrive[]}} */ (await api.get("/api/v1/redrives", { signal }));
      lastRedrives = answer.redrives;
      return answer;
    },
    // They are not on the stream: who looks asks often while one goes on.
    get every() {
      return lastRedrives.some(isActive) ? 700 : 10_000;
    },
    calm: 300,
  }, []);
  useEffect(() => {
    if (refreshRequests.value) followed.reload();
  }, [refreshRequests.value]);
  const shown = (followed.data?.redrives ?? []).filter((redrive) => isActive(redrive)
    || (!dismissedIds.value.has(redrive.id) && now.value - (toMillis(redrive.ended_at) ?? 0) < SHOW_FINISHED_MS));
  if (shown.length === 0) return null;
  return html`<section class="progresses" aria-label="Redrives">
    ${shown.map((redrive) => html`<${RedriveRow} key=${redrive.id} of=${redrive} onChange=${followed.reload} />`)}
  </section>`;
}

/** @param {{of: Redrive, onChange: () => void}} props */
function RedriveRow({ of: redrive, onChange }) {
  const { id, state, why, by, filter, matched, retried, refused, rate, canary } = redrive;
  const going = isActive(redrive);
  const words = describeScope(filter);
  const how = [rate && `at most ${rate}`, canary && `${canary} first`, `by ${by}`].filter(Boolean).join(", ");
  const tone = going ? "busy" : state === "done" ? (refused ? "warn" : "good") : "bad";
  const note = [
    state === "canary" && "waiting for the canary tasks",
    refused > 0 && `${refused} could not be run again`,
    state === "done" && "done",
    state === "stopped" && `stopped: ${why}`,
  ].filter(Boolean).join("; ");
  const stop = () => runWithToast(() => stopRedrive(id), "The redrive is stopped. Tasks that it queued stay queued.").then(onChange);
  return html`<${Progress} title=${html`Redrive of ${words} <span class="faint">${how}</span>`} label=${`Redrive of ${words}`} tone=${tone}
    done=${retried + refused} total=${matched} note=${note}
    onStop=${going && hasRole("operator") ? stop : undefined}
    onClose=${going ? undefined : () => { dismissedIds.value = new Set(dismissedIds.value).add(id); }} />`;
}
