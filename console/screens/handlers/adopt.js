// Adopts missing tasks of a handler, and replays stored events to it.

import { api, encodeSegment } from "../../data/api.js";
import { formatCount, pluralize } from "../../data/numbers.js";
import { boundTenant } from "../../data/session.js";
import { Button } from "../../parts/button.js";
import { promptUser } from "../../parts/prompt.js";
import { Notice } from "../../parts/states.js";
import { runWithToast } from "../../parts/actions.js";
import { showError, showToast } from "../../parts/toast.js";
import { html, signal } from "../../parts/ui.js";

/** @typedef {import("../../data/api-types.js").Handler} Handler */
/** @typedef {{adopted: number, replayed: number, more: boolean}} AdoptResult */

/** Active replays by handler. They continue when the screen is left. @type
 * {import("../../vendor/signals.js").Signal<Record<string, {replayed: number, isStopping: boolean}>>} */
const activeReplaysByHandler = signal({});

/** Adopts the missing tasks of a handler. With `from`, also replays to it a batch of the events from this id on: `more`
 * says that the call has to be repeated.
 * @param {string} name @param {number} [from]
 * @returns {Promise<AdoptResult>} */
function adoptTasksAndReplayBatch(name, from) {
  return api.post(`/api/v1/handlers/${encodeSegment(name)}/adopt`, from === undefined ? {} : { from });
}

/** Adopting needs a defined handler and a token that is not bound to a tenant.
 * @param {Handler} handler */
export function mayAdoptTasks({ defined }) {
  return defined && boundTenant.value === null;
}

/** @param {{handler: Handler, onChange: () => void}} props */
export function MissingTasksNotice({ handler, onChange }) {
  const { name, counts, defined } = handler;
  if (counts.missing === 0 && defined) return null;
  if (!defined) {
    return html`<${Notice} tone="warn"><span><b>${name}</b> is no longer defined. ${counts.missing > 0
      ? `${pluralize(counts.missing, "task")} ${counts.missing === 1 ? "is" : "are"} missing: define the handler again and adopt them, or cancel them.`
      : "Only its history is left."}</span><//>`;
  }
  const adopt = async () => {
    const isDone = await runWithToast(() => adoptTasksAndReplayBatch(name), `Missing tasks of ${name} were adopted`, "No tasks were adopted");
    if (isDone) onChange();
  };
  return html`<${Notice} tone="warn"><span>${pluralize(counts.missing, "task")} of <b>${name}</b> ${counts.missing === 1 ? "was" : "were"} set aside while the handler was not defined.</span>
    ${mayAdoptTasks(handler) && html`<${Button} small icon="retry" role="operator" onClick=${adopt}>Adopt<//>`}<//>`;
}

/** Asks for the first event, and replays the events from this one on.
 * @param {string} name @param {() => void} onChange */
export async function promptAndReplay(name, onChange) {
  const values = await promptUser({
    title: `Replay history to ${name}`,
    text: html`<p>Creates a task for every matching event since then, at the lowest priority. Events that already have a task of this
      handler are skipped. Missing tasks are adopted, too.</p>`,
    actionLabel: "Replay",
    fields: [{
      name: "from", label: "From event", required: true, hint: "An event id; 0 means all stored events.",
      validate: (text) => (/^\d{1,16}$/.test(text.trim()) ? null : "An event id is a whole number, such as 1794739675104000."),
    }],
  });
  if (!values) return;
  await replayEvents(name, Number(values.from));
  onChange();
}

/** Replays all events from this id on, batch by batch, until the user stops it.
 * @param {string} name @param {number} from */
async function replayEvents(name, from) {
  const progress = { replayed: 0, isStopping: false };
  /** @param {typeof progress | null} current */
  const setProgress = (current) => {
    const { [name]: _, ...others } = activeReplaysByHandler.value;
    activeReplaysByHandler.value = current ? { ...others, [name]: current } : others;
  };
  setProgress(progress);
  let adoptedCount = 0;
  try {
    for (;;) {
      const result = await adoptTasksAndReplayBatch(name, from);
      progress.replayed += result.replayed;
      adoptedCount += result.adopted;
      if (!result.more || progress.isStopping) break;
      setProgress(progress);
      activeReplaysByHandler.value = { ...activeReplaysByHandler.value };
    }
    showToast({ text: `${pluralize(progress.replayed, "event")} replayed to ${name}${adoptedCount ? `, ${pluralize(adoptedCount, "task")} adopted` : ""}` });
  } catch (error) {
    showError(error, `The replay to ${name} stopped after ${pluralize(progress.replayed, "event")}`);
  }
  setProgress(null);
}

/** @param {{name: string}} props */
export function ReplayProgress({ name }) {
  const progress = activeReplaysByHandler.value[name];
  if (!progress) return null;
  const stop = () => {
    progress.isStopping = true;
    activeReplaysByHandler.value = { ...activeReplaysByHandler.value };
  };
  return html`<${Notice}><span>Replaying events: ${formatCount(progress.replayed)} so far.</span>
    <${Button} small icon="stop" disabled=${progress.isStopping} onClick=${stop}>${progress.isStopping ? "Stopping" : "Stop"}<//><//>`;
}
