// The same done to many things, one call each, with how far it is. It goes on while one looks at other screens, and
// ends with the page.

import { errorText } from "../data/problem.js";
import { token } from "../data/session.js";
import { Progress } from "./progress.js";
import { html, signal } from "./ui.js";

/** `why` is what the server said to those that it refused, each sentence once, with how many it was said to.
 * @typedef {{key: number, title: string, total: number, done: number, refused: number, why: Map<string, number>,
 *   state: "going" | "done" | "stopped"}} BulkJob */

/** How many calls are under way at a time. */
const PARALLEL_CALLS = 4;
/** Works that are over and still shown, and sentences that are kept of one. */
const MAX_FINISHED_SHOWN = 4;
const MAX_REASONS = 20;

/** @type {import("../vendor/signals.js").Signal<BulkJob[]>} */
const bulkJobs = signal([]);
let lastKey = 0;

addEventListener("beforeunload", (event) => {
  if (bulkJobs.value.some((work) => work.state === "going")) event.preventDefault();
});

/** @param {number} key @param {(work: BulkJob) => Partial<BulkJob>} change */
function updateJob(key, change) {
  bulkJobs.value = bulkJobs.value.map((work) => (work.key === key ? { ...work, ...change(work) } : work));
}

/** Does something to each, a few at a time. Answers when it is over.
 * @param {{title: string, ids: string[], run: (id: string) => Promise<unknown>}} deed */
export async function runBulk({ title, ids, run }) {
  lastKey += 1;
  const key = lastKey;
  const over = bulkJobs.value.filter((work) => work.state !== "going").slice(0, -MAX_FINISHED_SHOWN);
  bulkJobs.value = [...bulkJobs.value.filter((work) => !over.includes(work)),
    { key, title, total: ids.length, done: 0, refused: 0, why: new Map(), state: /** @type {const} */ ("going") }];
  const left = ids.values();
  const mine = token.value;
  // Who signs in afterwards does not do it in the other's stead.
  const goesOn = () => token.value === mine && bulkJobs.value.find((work) => work.key === key)?.state === "going";
  const one = async () => {
    for (const id of left) {
      if (!goesOn()) return;
      /** @type {unknown} */
      let error = null;
      await run(id).catch((problem) => {
        error = problem;
      });
      updateJob(key, (work) => ({
        done: work.done + 1,
        refused: work.refused + (error ? 1 : 0),
        why: error ? countReason(work.why, errorText(error)) : work.why,
      }));
    }
  };
  await Promise.all(Array.from({ length: PARALLEL_CALLS }, one));
  updateJob(key, ({ state, done, total }) => ({ state: state === "going" ? (done < total ? "stopped" : "done") : state }));
}

/** @param {Map<string, number>} why @param {string} sentence */
function countReason(why, sentence) {
  if (why.has(sentence) || why.size < MAX_REASONS) return new Map(why).set(sentence, (why.get(sentence) ?? 0) + 1);
  return why;
}

/** How far all of it is. */
export function BulkProgress() {
  if (bulkJobs.value.length === 0) return null;
  return html`<section class="progresses" aria-label="In progress">
    ${bulkJobs.value.map(({ key, title, total, done, refused, why, state }) => html`<${Progress} key=${key} title=${title} label=${title}
      tone=${state === "going" ? "busy" : refused || state === "stopped" ? "warn" : "good"} done=${done} total=${total}
      note=${progressNote(refused, why, state)}
      onStop=${state === "going" ? () => updateJob(key, () => ({ state: "stopped" })) : undefined}
      onClose=${state === "going" ? undefined : () => { bulkJobs.value = bulkJobs.value.filter((work) => work.key !== key); }} />`)}
  </section>`;
}

/** @param {number} refused @param {Map<string, number>} why @param {BulkJob["state"]} state */
function progressNote(refused, why, state) {
  const stopped = state === "stopped" ? "Stopped. " : "";
  if (refused === 0) return stopped;
  const [[sentence] = [""]] = [...why].sort(([, a], [, b]) => b - a);
  return `${stopped}${refused} refused: ${sentence}`;
}
