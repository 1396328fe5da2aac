// One trouble: all of its error, which tasks it concerns, and the way out.

import { count, counted } from "../../data/numbers.js";
import { retry } from "../../data/tasks.js";
import { Button } from "../../parts/button.js";
import { cli } from "../../parts/copy.js";
import { ask } from "../../parts/dialog.js";
import { Facts, Panel } from "../../parts/facts.js";
import { HandlerLink, KeyLink, Link, TaskLink } from "../../parts/link.js";
import { many } from "../../parts/many.js";
import { Ago, Full } from "../../parts/time.js";
import { soon } from "../../parts/toast.js";
import { html } from "../../parts/ui.js";
import { places } from "../../shell/router.js";

/** @typedef {import("./groups.js").Group} Group */
/** @typedef {import("./read.js").Looked} Looked */
/** @typedef {import("../../data/tasks.js").Wanted} Wanted */
/** @typedef {import("../../data/redrives.js").Scope} Scope */

/** Tasks that are named, and run again one by one at most. */
const NAMED = 12;
const MOST = 10_000;

/** @param {{group: Group, groups: Group[], data: Looked, wanted: Wanted, onRedrive: (scope: Scope) => void, onClose: () => void}} props */
export function Detail({ group, groups, data, wanted, onRedrive, onClose }) {
  const { handler, kind, error, failures, newest, oldest, objects, tenants } = group;
  /** @type {Scope} */
  const scope = { status: "FAILED", ...wanted, handler };
  // A redrive cannot tell errors apart: it is for the case that all of the handler's failures are this one.
  const alone = !data.more && groups.every((other) => other === group || other.handler !== handler || other.kind !== "failed");
  return html`<div class="failures-detail"><${Panel} title=${handler} label="Failure group"
    aside=${html`<${Button} small kind="quiet" icon="close" label="Close" onClick=${onClose} />`}>
    <div class="stack">
      ${kind !== "missing" && html`<pre class="failures-error">${error || "No error message."}</pre>`}
      ${kind === "failed" && html`<div class="actions">
        <${Button} kind="primary" icon="retry" role="operator" onClick=${() => (alone ? onRedrive(scope) : oneByOne(group))}>Run ${count(failures.length)} again<//>
        ${!alone && html`<${Button} role="operator" onClick=${() => onRedrive(scope)}>Redrive all of ${handler}…<//>`}
      </div>`}
      ${kind === "step" && html`<p class="notice">These are steps of orders and cannot be run again from here. Their orders move on, or can be resumed.</p>`}
      ${kind === "missing" && html`<p class="notice warn">The handler is no longer defined. Define it again and adopt its tasks, or cancel them: <code>${cli("handlers", "adopt", handler)}</code></p>`}
      <${Facts} of=${[
        ["Tasks", html`<${Link} to=${places.tasks({ ...wanted, handler, status: kind === "missing" ? "missing" : "FAILED" })}>${counted(failures.length, "task")}<//>`],
        ["Handler", html`<${HandlerLink} name=${handler} />`],
        ["Objects", count(objects)],
        ["Tenants", tenants.slice(0, 8).join(", ") + (tenants.length > 8 ? ` and ${tenants.length - 8} more` : "")],
        ["Latest", html`<${Full} at=${newest} />`],
        ["First", html`<${Full} at=${oldest} />`],
      ]} />
      <ul class="failures-tasks" aria-label="Newest tasks of the group">
        ${failures.slice(0, NAMED).map((failure) => html`<li key=${failure.id}><${TaskLink} id=${failure.id} tail />
          ${failure.key !== null && html`<${KeyLink} of=${failure.key} tenant=${failure.tenant} />`}<${Ago} at=${failure.at} /></li>`)}
        ${failures.length > NAMED && html`<li class="faint">and ${count(failures.length - NAMED)} more</li>`}
      </ul>
    </div>
  <//></div>`;
}

/** Runs exactly these again. @param {Group} group */
async function oneByOne({ handler, failures }) {
  // The oldest first, as they stood in their lanes.
  const ids = failures.slice(0, MOST).map((failure) => failure.id).reverse();
  const what = counted(ids.length, "task");
  const sure = await ask({
    title: "Run these tasks again",
    text: html`<p><b>${what}</b> of ${handler} with this error will be run again, one by one, the oldest first. Keep this page open until it is done.</p>`,
    action: `Run ${count(ids.length)} again`,
  });
  if (sure) soon({ text: `${what} of ${handler} will be run again`, run: () => many({ title: `Running ${what} of ${handler} again`, ids, run: retry }) });
}
