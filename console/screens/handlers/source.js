// The collections of a source: their schedules, and running one now.

import { api } from "../../data/api.js";
import { Badge } from "../../parts/badge.js";
import { Button } from "../../parts/button.js";
import { Panel } from "../../parts/panel.js";
import { Link } from "../../parts/link.js";
import { promptAndSetRule } from "../../parts/rules.js";
import { RelativeTime } from "../../parts/time.js";
import { showError, showToast } from "../../parts/toast.js";
import { html } from "../../parts/ui.js";
import { screenPaths } from "../../shell/router.js";

/** @typedef {import("../../data/api-types.js").Handler} Handler */
/** @typedef {import("../../data/api-types.js").Schedule} Schedule */

/** @param {{handler: Handler, schedules: Schedule[], onChange: () => void}} props */
export function SourceCollections({ handler, schedules, onChange }) {
  const { name, source, rules, queues } = handler;
  if (!source) return null;
  return html`<${Panel} title="Collections" aside=${`of the tenant ${source.tenant}`}>
    <ul class="collections">${source.collections.map(({ name: collection, priority }) => {
      const pair = `${name}/${collection}`;
      const schedule = schedules.find((candidate) => candidate.name === pair);
      const isPaused = rules.some((rule) => rule.space === "collection" && rule.name === pair);
      const queue = queues.find((queue) => queue.collection === collection);
      return html`<li key=${collection}>
        <b>${collection}</b>
        <span class="soft">${schedule ? html`<${Link} to=${screenPaths.schedule(pair)}>${schedule.description}<//>` : "on request only"}</span>
        ${schedule?.next[0] && html`<span class="faint"><${RelativeTime} at=${schedule.next[0]} /></span>`}
        <span class="faint">priority ${priority}</span>
        ${isPaused ? html`<${Badge} tone="warn">On hold<//>` : queue?.running ? html`<${Badge} tone="busy">Running<//>` : null}
        <span class="spacer"></span>
        ${!isPaused && html`<${Button} small kind="quiet" icon="pause" role="operator" onClick=${() => promptAndSetRule("pause", { space: "collection", name: pair }, onChange, source.tenant)}>Pause<//>`}
        <${Button} small icon="play" role="operator" onClick=${() => runCollection(name, collection, onChange)}>Run now<//>
      </li>`;
    })}</ul>
  <//>`;
}

/** @param {string} source @param {string} collection @param {() => void} onChange */
async function runCollection(source, collection, onChange) {
  try {
    const { task_id: task } = await api.post("/tasks", undefined, { query: { source, collection } });
    showToast({ text: `${source}/${collection} is queued or running`, detail: task });
    onChange();
  } catch (error) {
    showError(error, `${source}/${collection} was not run`);
  }
}
