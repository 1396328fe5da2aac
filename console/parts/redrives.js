// The redrives of this node: those that go on, and those that ended while somebody looked.

import { api } from "../data/api.js";
import { useFollowed } from "../data/follow.js";
import { scopeWords, stopRedrive } from "../data/redrives.js";
import { may } from "../data/session.js";
import { millis, now } from "../data/time.js";
import { Progress } from "./progress.js";
import { attempt } from "./toast.js";
import { html, signal, useEffect } from "./ui.js";

/** @typedef {import("../data/bodies.js").Redrive} Redrive */

/** For how long one that has ended is still shown. */
const SHOWN_MS = 120_000;

/** Those that somebody put away. */
const away = signal(/** @type {Set<string>} */ (new Set()));
const asked = signal(0);

/** One was begun: they are to be read now. */
export function lookAtRedrives() {
  asked.value += 1;
}

/** As they were read last. @type {Redrive[]} */
let last = [];

/** @param {Redrive} redrive */
function goesOn({ state }) {
  return state === "running" || state === "canary";
}

export function Redrives() {
  const followed = useFollowed({
    read: async (signal) => {
      const answer = /** @type {{redrives: Redrive[]}} */ (await api.get("/api/v1/redrives", { signal }));
      last = answer.redrives;
      return answer;
    },
    // They are not on the stream: who looks asks often while one goes on.
    get every() {
      return last.some(goesOn) ? 700 : 10_000;
    },
    calm: 300,
  }, []);
  useEffect(() => {
    if (asked.value) followed.reload();
  }, [asked.value]);
  const shown = (followed.data?.redrives ?? []).filter((redrive) => goesOn(redrive)
    || (!away.value.has(redrive.id) && now.value - (millis(redrive.ended_at) ?? 0) < SHOWN_MS));
  if (shown.length === 0) return null;
  return html`<section class="progresses" aria-label="Redrives">
    ${shown.map((redrive) => html`<${One} key=${redrive.id} of=${redrive} onChange=${followed.reload} />`)}
  </section>`;
}

/** @param {{of: Redrive, onChange: () => void}} props */
function One({ of: redrive, onChange }) {
  const { id, state, why, by, filter, matched, retried, refused, rate, canary } = redrive;
  const going = goesOn(redrive);
  const words = scopeWords(filter);
  const how = [rate && `at most ${rate}`, canary && `${canary} first`, `by ${by}`].filter(Boolean).join(", ");
  const tone = going ? "busy" : state === "done" ? (refused ? "warn" : "good") : "bad";
  const note = [
    state === "canary" && "waiting for the canary tasks",
    refused > 0 && `${refused} could not be run again`,
    state === "done" && "done",
    state === "stopped" && `stopped: ${why}`,
  ].filter(Boolean).join("; ");
  const stop = () => attempt(() => stopRedrive(id), "The redrive is stopped. Tasks that it queued stay queued.").then(onChange);
  return html`<${Progress} title=${html`Redrive of ${words} <span class="faint">${how}</span>`} label=${`Redrive of ${words}`} tone=${tone}
    done=${retried + refused} total=${matched} note=${note}
    onStop=${going && may("operator") ? stop : undefined}
    onClose=${going ? undefined : () => { away.value = new Set(away.value).add(id); }} />`;
}
