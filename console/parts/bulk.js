// Runs one call for each of many ids and shows the progress. It continues on other screens, and ends with the page.

import { errorText } from "../data/problem.js";
import { token } from "../data/session.js";
import { Progress } from "./progress.js";
import { html, signal } from "./ui.js";

/** `reasons` counts the refused calls by the error text of the server.
 * @typedef {{key: number, title: string, total: number, done: number, refused: number, reasons: Map<string, number>,
 *   state: "running" | "done" | "stopped"}} BulkJob */

/** How many calls run in parallel. */
const PARALLEL_CALLS = 4;
/** Finished jobs that stay visible, and error texts kept per job. */
const MAX_FINISHED_SHOWN = 4;
const MAX_REASONS = 20;

/** @type {import("../vendor/signals.js").Signal<BulkJob[]>} */
const bulkJobs = signal([]);
let lastKey = 0;

addEventListener("beforeunload", (event) => {
  if (bulkJobs.value.some((work) => work.state === "running")) event.preventDefault();
});

/** @param {number} key @param {(work: BulkJob) => Partial<BulkJob>} change */
function updateJob(key, change) {
  bulkJobs.value = bulkJobs.value.map((work) => (work.key === key ? { ...work, ...change(work) } : work));
}

/** Runs a call for each id. Resolves when all have ended.
 * @param {{title: string, ids: string[], run: (id: string) => Promise<unknown>}} action */
export async function runBulk({ title, ids, run }) {
  lastKey += 1;
  const key = lastKey;
  const expired = bulkJobs.value.filter((work) => work.state !== "running").slice(0, -MAX_FINISHED_SHOWN);
  bulkJobs.value = [...bulkJobs.value.filter((work) => !expired.includes(work)),
    { key, title, total: ids.length, done: 0, refused: 0, reasons: new Map(), state: /** @type {const} */ ("running") }];
  const remainingIds = ids.values();
  const startedBy = token.value;
  // A token that signs in later must not continue this job.
  const mayContinue = () => token.value === startedBy && bulkJobs.value.find((work) => work.key === key)?.state === "running";
  const runNext = async () => {
    for (const id of remainingIds) {
      if (!mayContinue()) return;
      /** @type {unknown} */
      let error = null;
      await run(id).catch((problem) => {
        error = problem;
      });
      updateJob(key, (work) => ({
        done: work.done + 1,
        refused: work.refused + (error ? 1 : 0),
        reasons: error ? countReason(work.reasons, errorText(error)) : work.reasons,
      }));
    }
  };
  await Promise.all(Array.from({ length: PARALLEL_CALLS }, runNext));
  updateJob(key, ({ state, done, total }) => ({ state: state === "running" ? (done < total ? "stopped" : "done") : state }));
}

/** @param {Map<string, number>} reasons @param {string} sentence */
function countReason(reasons, sentence) {
  if (reasons.has(sentence) || reasons.size < MAX_REASONS) return new Map(reasons).set(sentence, (reasons.get(sentence) ?? 0) + 1);
  return reasons;
}

/** Progress of all jobs. */
export function BulkProgress() {
  if (bulkJobs.value.length === 0) return null;
  return html`<section class="progress-list" aria-label="In progress">
    ${bulkJobs.value.map(({ key, title, total, done, refused, reasons, state }) => html`<${Progress} key=${key} title=${title} label=${title}
      tone=${state === "running" ? "busy" : refused || state === "stopped" ? "warn" : "good"} done=${done} total=${total}
      note=${progressNote(refused, reasons, state)}
      onStop=${state === "running" ? () => updateJob(key, () => ({ state: "stopped" })) : undefined}
      onClose=${state === "running" ? undefined : () => { bulkJobs.value = bulkJobs.value.filter((work) => work.key !== key); }} />`)}
  </section>`;
}

/** @param {number} refused @param {Map<string, number>} reasons @param {BulkJob["state"]} state */
function progressNote(refused, reasons, state) {
  const stopped = state === "stopped" ? "Stopped. " : "";
  if (refused === 0) return stopped;
  const [[sentence] = [""]] = [...reasons].sort(([, a], [, b]) => b - a);
  return `${stopped}${refused} refused: ${sentence}`;
}
