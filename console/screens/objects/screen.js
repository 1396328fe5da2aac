// Finds an object: by key, among halted lanes, or among recently changed objects.

import { boundTenant } from "../../data/session.js";
import { Button } from "../../parts/button.js";
import { ScreenHeader } from "../../parts/panel.js";
import { html, useId, useState } from "../../parts/ui.js";
import { navigate, screenPaths } from "../../shell/router.js";
import { RecentObjects } from "./recent.js";
import { HaltedLanes } from "./halted-lanes.js";

/** @param {{query: Record<string, string>}} props */
export default function Objects({ query }) {
  const id = useId();
  const [key, setKey] = useState(query.key ?? "");
  const [tenant, setTenant] = useState(query.tenant ?? "");
  /** @param {Event} event */
  const openObject = (event) => {
    event.preventDefault();
    if (key.trim()) navigate(screenPaths.object(key.trim(), tenant.trim()));
  };
  return html`<div class="objects stack">
    <${ScreenHeader} title="Objects" subtitle="Events with the same key belong to one object. Each handler processes them in order, in a lane." />
    <form class="filters" role="search" aria-label="Find an object" onSubmit=${openObject}>
      <label class="filter" for=${`${id}-key`}><span>Key</span>
        <input id=${`${id}-key`} class="objects-key" value=${key} placeholder="record:1" autocomplete="off" spellcheck=${false} maxlength="512"
          onInput=${(/** @type {Event} */ event) => setKey(/** @type {HTMLInputElement} */ (event.target).value)} /></label>
      ${boundTenant.value === null && html`<label class="filter" for=${`${id}-tenant`}><span>Tenant</span>
        <input id=${`${id}-tenant`} value=${tenant} placeholder="default" autocomplete="off" spellcheck=${false} maxlength="128"
          onInput=${(/** @type {Event} */ event) => setTenant(/** @type {HTMLInputElement} */ (event.target).value)} /></label>`}
      <${Button} type="submit" kind="primary" icon="search" disabled=${key.trim() === ""}>Open<//>
    </form>
    <${HaltedLanes} />
    <${RecentObjects} tenant=${query.tenant} />
  </div>`;
}
