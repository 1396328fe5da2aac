// Runs one call for each of many ids and shows the progress. It continues on other screens, and stops when the page is closed.

import { errorText } from "../data/problem.js";
import { token } from "../data/session.js";
import { ProgressRow } from "./progress.js";
import { html, signal } from "./ui.js";

/** `reasons` counts the refused calls by the error text of the server.
 * @typedef {{key: number, title: string, total: number, done: number, refused: number, reasons: Map<string, number>,
 *   state: "running" | "done" | "stopped"}} BulkJob */

/** How many calls run in parallel. */
const PARALLEL_CALLS = 4;
/** Finished jobs that stay visible, and error texts kept per job. */
const MAX_FINISHED_JOBS = 4;
const MAX_REASONS_PER_JOB = 20;

/** @type {import("../vendor/signals.js").Signal<BulkJob[]>} */
const bulkJobs = signal([]);
let lastJobKey = 0;

addEventListener("beforeunload", (event) => {
  if (bulkJobs.value.some((job) => job.state === "running")) event.preventDefault();
});

/** Changes fields of a job of this page. @param {number} key @param {(job: BulkJob) => Partial<BulkJob>} change */
function updateBulkJob(key, change) {
  bulkJobs.value = bulkJobs.value.map((job) => (job.key === key ? { ...job, ...change(job) } : job));
}

/** Runs a call for each id. Resolves when all have ended.
 * @param {{title: string, ids: string[], run: (id: string) => Promise<unknown>}} action */
export async function runBulkJob({ title, ids, run }) {
  lastJobKey += 1;
  const key = lastJobKey;
  const expired = bulkJobs.value.filter((job) => job.state !== "running").slice(0, -MAX_FINISHED_JOBS);
  bulkJobs.value = [...bulkJobs.value.filter((job) => !expired.includes(job)),
    { key, title, total: ids.length, done: 0, refused: 0, reasons: new Map(), state: /** @type {const} */ ("running") }];
  const remainingIds = ids.values();
  const startToken = token.value;
  // If another token is signed in meanwhile, the job must not continue with it.
  const mayContinue = () => token.value === startToken && bulkJobs.value.find((job) => job.key === key)?.state === "running";
  const runNext = async () => {
    for (const id of remainingIds) {
      if (!mayContinue()) return;
      /** @type {unknown} */
      let error = null;
      await run(id).catch((problem) => {
        error = problem;
      });
      updateBulkJob(key, (job) => ({
        done: job.done + 1,
        refused: job.refused + (error ? 1 : 0),
        reasons: error ? countRefusalReason(job.reasons, errorText(error)) : job.reasons,
      }));
    }
  };
  await Promise.all(Array.from({ length: PARALLEL_CALLS }, runNext));
  updateBulkJob(key, ({ state, done, total }) => ({ state: state === "running" ? (done < total ? "stopped" : "done") : state }));
}

/** @param {Map<string, number>} reasons @param {string} reason */
function countRefusalReason(reasons, reason) {
  if (reasons.has(reason) || reasons.size < MAX_REASONS_PER_JOB) return new Map(reasons).set(reason, (reasons.get(reason) ?? 0) + 1);
  return reasons;
}

/** Progress of all jobs. */
export function BulkJobsProgress() {
  if (bulkJobs.value.length === 0) return null;
  return html`<section class="progress-list" aria-label="In progress">
    ${bulkJobs.value.map(({ key, title, total, done, refused, reasons, state }) => html`<${ProgressRow} key=${key} title=${title} label=${title}
      tone=${state === "running" ? "busy" : refused || state === "stopped" ? "warn" : "good"} done=${done} total=${total}
      note=${bulkProgressNote(refused, reasons, state)}
      onStop=${state === "running" ? () => updateBulkJob(key, () => ({ state: "stopped" })) : undefined}
      onClose=${state === "running" ? undefined : () => { bulkJobs.value = bulkJobs.value.filter((job) => job.key !== key); }} />`)}
  </section>`;
}

/** @param {number} refused @param {Map<string, number>} reasons @param {BulkJob["state"]} state */
function bulkProgressNote(refused, reasons, state) {
  const stopped = state === "stopped" ? "Stopped. " : "";
  if (refused === 0) return stopped;
  const [[commonestReason] = [""]] = [...reasons].sort(([, a], [, b]) => b - a);
  return `${stopped}${refused} refused: ${commonestReason}`;
}
