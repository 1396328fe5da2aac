// The active settings as YAML, each with its origin.

import { pluralize } from "../../data/numbers.js";
import { Button } from "../../parts/button.js";
import { CopyButton } from "../../parts/copy.js";
import { Panel } from "../../parts/panel.js";
import { classNames, html, useMemo } from "../../parts/ui.js";
import { setQuery } from "../../shell/router.js";

/** @typedef {{number: number, depth: number, text: string, origin: string | null}} SettingLine */

/** Splits each line into text and origin. Values that contain `#` are quoted. @param {string} yaml
 * @returns {SettingLine[]} */
export function parseSettingLines(yaml) {
  return yaml.trimEnd().split("\n").map((line, number) => {
    const commentIndex = line.lastIndexOf("  # ");
    const text = commentIndex < 0 ? line : line.slice(0, commentIndex);
    return { number, depth: /^[ -]*/.exec(text)?.[0].length ?? 0, text, origin: commentIndex < 0 ? null : line.slice(commentIndex + 4) };
  });
}

/** The included lines and their parent lines.
 * @param {SettingLine[]} lines @param {(line: SettingLine) => boolean} isIncluded */
export function filterLinesWithParents(lines, isIncluded) {
  const includedLines = new Set();
  /** @type {SettingLine[]} */
  const ancestors = [];
  for (const line of lines) {
    while (ancestors.length && ancestors[ancestors.length - 1].depth >= line.depth) ancestors.pop();
    ancestors.push(line);
    if (isIncluded(line)) for (const ancestor of ancestors) includedLines.add(ancestor);
  }
  return lines.filter((line) => includedLines.has(line));
}

/** @param {{yaml: string, query: Record<string, string>}} props */
export function SettingsPanel({ yaml, query: { q = "", defaults } }) {
  const lines = useMemo(() => parseSettingLines(yaml), [yaml]);
  const showDefaults = defaults === "1";
  const searchText = q.toLowerCase();
  const visibleLines = useMemo(() => filterLinesWithParents(lines, (line) => (showDefaults || (line.origin !== null && line.origin !== "default"))
    && (searchText === "" || `${line.text} ${line.origin ?? ""}`.toLowerCase().includes(searchText))), [lines, showDefaults, searchText]);
  return html`<${Panel} title="Active settings" flush aside=${html`<${Button} small pressed=${showDefaults} onClick=${() => setQuery({ defaults: showDefaults ? null : "1" })}>Show defaults<//>
    <${CopyButton} text=${yaml} label="settings" />`}>
    ${visibleLines.length === 0
      ? html`<p class="settings-empty soft">${q ? "No setting matches." : "Nothing is set: all values are defaults."}</p>`
      : html`<div class="settings" tabindex="0" role="region" aria-label=${`Settings, ${pluralize(visibleLines.length, "line")}`}>
        ${visibleLines.map(({ number, text, origin }) => html`<div key=${number} class=${classNames("setting", origin === "default" && "is-default")}>
          <code>${text}</code>${origin !== null && html`<span class="setting-origin" title=${origin}><bdi>${origin}</bdi></span>`}</div>`)}
      </div>`}
  <//>`;
}
