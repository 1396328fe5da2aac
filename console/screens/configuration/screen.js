// The active configuration, its files, warnings and reloads.

import { api } from "../../data/api.js";
import { useLiveData } from "../../data/live-data.js";
import { pluralize } from "../../data/numbers.js";
import { Badge } from "../../parts/badge.js";
import { cliCommand, CopyAsMenu } from "../../parts/copy.js";
import { PropertyList, ScreenHeader, Panel } from "../../parts/panel.js";
import { FilterBar } from "../../parts/filters.js";
import { Link } from "../../parts/link.js";
import { Notice, LiveView } from "../../parts/states.js";
import { RelativeTime, TimeWithDayUnlessToday, DateTime } from "../../parts/time.js";
import { html } from "../../parts/ui.js";
import { screenPaths } from "../../shell/router.js";
import { SettingsPanel } from "./settings.js";

/** @typedef {import("../../data/api-types.js").ConfigurationReport} ConfigurationReport */
/** @typedef {import("../../data/api-types.js").ConfigurationReload} ConfigurationReload */

const CONFIG_URL = "/api/v1/config";

/** @param {{query: Record<string, string>}} props */
export default function Configuration({ query }) {
  const live = useLiveData({
    read: (signal) => /** @type {Promise<ConfigurationReport>} */ (api.get(CONFIG_URL, { signal })),
    // Rejected reloads publish no event.
    filter: { types: ["FileBasedEvent"] }, pollInterval: 2000,
  }, []);
  return html`
    <${ScreenHeader} title="Configuration" subtitle=${live.data && html`<span>${live.data.node}</span><span>active since <${TimeWithDayUnlessToday} at=${live.data.loaded_at} withMillis=${false} /></span>`}>
      <${CopyAsMenu} call=${{ path: CONFIG_URL }} cli=${cliCommand("config", "show")} />
    <//>
    <${LiveView} live=${live} lines=${10} errorTitle="The configuration could not be loaded">${(/** @type {ConfigurationReport} */ config) => html`<${ConfigurationDetail} config=${config} query=${query} />`}<//>`;
}

/** @param {{config: ConfigurationReport, query: Record<string, string>}} props */
function ConfigurationDetail({ config, query }) {
  const { files, warnings, reloads, settings, watched, loaded_at, node } = config;
  const newestReload = reloads[0];
  const isRejected = newestReload !== undefined && !newestReload.applied;
  return html`
    ${isRejected && html`<${Notice} tone="bad"><span>The changed files were not applied: ${newestReload.error}. The previous configuration stays active. Fix the files; they are reloaded automatically.</span><//>`}
    ${!watched && html`<${Notice} tone="warn">The files are not watched: restart the process to apply changes.<//>`}
    <div class="columns">
      <div class="stack">
        <${FilterBar} query=${query} fields=${[{ name: "q", label: "Search the settings", hint: "a name, a value or a file", width: 260 }]} />
        <${SettingsPanel} yaml=${settings} query=${query} />
      </div>
      <div class="stack configuration-side">
        ${isRejected && html`<${ReloadHistory} reloads=${reloads} />`}
        <${Panel} title="Source">
          <${PropertyList} items=${[
            ["Node", node],
            ["Files", files.length ? html`<ul class="files">${files.map((file) => html`<li key=${file} class="mono">${file}</li>`)}</ul>` : "none: only defaults, environment variables and flags"],
            ["Loaded", html`<${DateTime} at=${loaded_at} />`],
            ["Watched", watched ? "yes: changes are applied within two seconds" : "no"],
            ["Changes", html`<${Link} to=${screenPaths.stream({ return: "FileBasedActivated,FileBasedRemoved" })}>in the stream<//>`],
          ]} />
          <p class="hint configuration-hint">Each node has its own configuration: open the console at its address.</p>
        <//>
        <${Panel} title="Warnings" aside=${warnings.length ? String(warnings.length) : null}>
          ${warnings.length === 0 ? html`<p class="soft">None.</p>`
            : html`<ul class="warnings">${warnings.map((warning) => html`<li key=${warning}><${ConfigurationWarning} text=${warning} /></li>`)}</ul>`}
        <//>
        ${!isRejected && html`<${ReloadHistory} reloads=${reloads} />`}
      </div>
    </div>`;
}

/** @param {{reloads: ConfigurationReload[]}} props */
function ReloadHistory({ reloads }) {
  return html`<${Panel} title="Reloads" aside=${reloads.length ? "the newest first" : null}>
    ${reloads.length === 0 ? html`<p class="soft">The files have not changed since the process started.</p>`
      : html`<ol class="reloads">${reloads.map((reload, index) => html`<${ReloadRow} key=${reload.at} reload=${reload} open=${index === 0} />`)}</ol>`}
  <//>`;
}

/** A warning: its position in the file, then its text. @param {{text: string}} props */
function ConfigurationWarning({ text }) {
  const match = /^(.+?:\d+:\d+): (.*)$/s.exec(text);
  return match ? html`<span class="mono faint">${match[1]}</span><span>${match[2]}</span>` : html`<span>${text}</span>`;
}

/** @param {{reload: ConfigurationReload, open: boolean}} props */
function ReloadRow({ reload: { at, applied, error, faults, more_faults: hiddenCount }, open }) {
  return html`<li>
    <div class="reload-head"><${Badge} tone=${applied ? "good" : "bad"}>${applied ? "Applied" : "Rejected"}<//><${TimeWithDayUnlessToday} at=${at} withMillis=${false} /><span class="faint"><${RelativeTime} at=${at} /></span></div>
    ${error && faults.length === 0 && html`<p class="soft">${error}</p>`}
    ${faults.length > 0 && html`<details open=${open}><summary>${pluralize(faults.length + hiddenCount, "error")}</summary>
      <ul class="faults">${faults.map((fault, index) => html`<li key=${index}><span class="mono faint">${fault.location}</span><span>${fault.message}</span>
        ${fault.excerpt !== null && html`<pre tabindex="0">${fault.excerpt}</pre>`}</li>`)}</ul>
      ${hiddenCount > 0 && html`<p class="faint">${pluralize(hiddenCount, "more", "more")} not shown. Fix these first.</p>`}
    </details>`}
  </li>`;
}
