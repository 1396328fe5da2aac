// The configuration: what this process is set up with, from where, and what became of changes.

import { api } from "../../data/api.js";
import { useFollowed } from "../../data/follow.js";
import { counted } from "../../data/numbers.js";
import { Badge } from "../../parts/badge.js";
import { cli, CopyAs } from "../../parts/copy.js";
import { Facts, Head, Panel } from "../../parts/facts.js";
import { Filters } from "../../parts/filters.js";
import { Link } from "../../parts/link.js";
import { Notice, Shown } from "../../parts/states.js";
import { Ago, Clock, Full } from "../../parts/time.js";
import { html } from "../../parts/ui.js";
import { places } from "../../shell/router.js";
import { Settings } from "./settings.js";

/** @typedef {import("../../data/bodies.js").Config} Config */
/** @typedef {import("../../data/bodies.js").Reload} Reload */

const PATH = "/api/v1/config";

/** @param {{query: Record<string, string>}} props */
export default function Configuration({ query }) {
  const known = useFollowed({
    read: (signal) => /** @type {Promise<Config>} */ (api.get(PATH, { signal })),
    // What is refused is told nowhere else.
    filter: { types: ["FileBasedEvent"] }, every: 2000,
  }, []);
  return html`
    <${Head} title="Configuration" sub=${known.data && html`<span>${known.data.node}</span><span>active since <${Clock} at=${known.data.loaded_at} fine=${false} /></span>`}>
      <${CopyAs} call=${{ path: PATH }} cli=${cli("config", "show")} />
    <//>
    <${Shown} of=${known} lines=${10} what="The configuration could not be loaded">${(/** @type {Config} */ config) => html`<${Detail} config=${config} query=${query} />`}<//>`;
}

/** @param {{config: Config, query: Record<string, string>}} props */
function Detail({ config, query }) {
  const { files, warnings, reloads, settings, watched, loaded_at, node } = config;
  const newest = reloads[0];
  const refused = newest !== undefined && !newest.applied;
  return html`
    ${refused && html`<${Notice} tone="bad"><span>The changed files were not applied: ${newest.error}. The previous configuration stays active. Fix the files; they are reloaded automatically.</span><//>`}
    ${!watched && html`<${Notice} tone="warn">The files are not watched: restart the process to apply changes.<//>`}
    <div class="columns">
      <div class="stack">
        <${Filters} query=${query} fields=${[{ name: "q", label: "Search the settings", hint: "a name, a value or a file", width: 260 }]} />
        <${Settings} yaml=${settings} query=${query} />
      </div>
      <div class="stack config-side">
        ${refused && html`<${History} reloads=${reloads} />`}
        <${Panel} title="Source">
          <${Facts} of=${[
            ["Node", node],
            ["Files", files.length ? html`<ul class="files">${files.map((file) => html`<li key=${file} class="mono">${file}</li>`)}</ul>` : "none: only defaults, environment variables and flags"],
            ["Loaded", html`<${Full} at=${loaded_at} />`],
            ["Watched", watched ? "yes: changes are applied within two seconds" : "no"],
            ["Changes", html`<${Link} to=${places.stream({ return: "FileBasedActivated,FileBasedRemoved" })}>in the stream<//>`],
          ]} />
          <p class="hint files-hint">Each node has its own configuration: open the console at its address.</p>
        <//>
        <${Panel} title="Warnings" aside=${warnings.length ? String(warnings.length) : null}>
          ${warnings.length === 0 ? html`<p class="soft">None.</p>`
            : html`<ul class="warnings">${warnings.map((warning) => html`<li key=${warning}><${Warning} text=${warning} /></li>`)}</ul>`}
        <//>
        ${!refused && html`<${History} reloads=${reloads} />`}
      </div>
    </div>`;
}

/** @param {{reloads: Reload[]}} props */
function History({ reloads }) {
  return html`<${Panel} title="Reloads" aside=${reloads.length ? "the newest first" : null}>
    ${reloads.length === 0 ? html`<p class="soft">The files have not changed since the process started.</p>`
      : html`<ol class="reloads">${reloads.map((reload, index) => html`<${OneReload} key=${reload.at} reload=${reload} open=${index === 0} />`)}</ol>`}
  <//>`;
}

/** Its place apart from its words. @param {{text: string}} props */
function Warning({ text }) {
  const found = /^(.+?:\d+:\d+): (.*)$/s.exec(text);
  return found ? html`<span class="mono faint">${found[1]}</span><span>${found[2]}</span>` : html`<span>${text}</span>`;
}

/** @param {{reload: Reload, open: boolean}} props */
function OneReload({ reload: { at, applied, error, faults, more_faults: more }, open }) {
  return html`<li>
    <div class="reload-head"><${Badge} tone=${applied ? "good" : "bad"}>${applied ? "Applied" : "Rejected"}<//><${Clock} at=${at} fine=${false} /><span class="faint"><${Ago} at=${at} /></span></div>
    ${error && faults.length === 0 && html`<p class="soft">${error}</p>`}
    ${faults.length > 0 && html`<details open=${open}><summary>${counted(faults.length + more, "error")}</summary>
      <ul class="faults">${faults.map((fault, index) => html`<li key=${index}><span class="mono faint">${fault.place}</span><span>${fault.message}</span>
        ${fault.excerpt !== null && html`<pre tabindex="0">${fault.excerpt}</pre>`}</li>`)}</ul>
      ${more > 0 && html`<p class="faint">${counted(more, "more", "more")} not shown. Fix these first.</p>`}
    </details>`}
  </li>`;
}
