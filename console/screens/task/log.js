// The live log of a task, with search and download. Only visible lines are in the page.

import { api, encodeSegment } from "../../data/api.js";
import { errorText } from "../../data/problem.js";
import { formatCount, pluralize } from "../../data/numbers.js";
import { Button } from "../../parts/button.js";
import { CopyButton } from "../../parts/copy.js";
import { Panel } from "../../parts/panel.js";
import { Notice } from "../../parts/states.js";
import { runWithToast } from "../../parts/actions.js";
import { html, useEffect, useLayoutEffect, useRef, useState } from "../../parts/ui.js";
import { useVirtualRows } from "../../parts/virtual-rows.js";
import { useShortcuts } from "../../shell/shortcuts.js";
import { LogLineRow } from "./log-line.js";
import { useTaskLog } from "./log-follower.js";

/** @typedef {import("./log-buffer.js").LogBuffer} LogBuffer */
/** @typedef {import("../../data/api-types.js").LogLine} LogLine */

const LINE_HEIGHT = 20;
/** Limits of the height of the box. */
const MIN_LOG_HEIGHT = 84;
const MAX_LOG_HEIGHT = 460;

/** @param {{id: string, isEnded: boolean, attempt: number}} props `attempt` is the number of attempts */
export function LogPanel({ id, isEnded, attempt }) {
  const { buffer, phase, error, version } = useTaskLog(id, isEnded, attempt);
  const [text, setText] = useState("");
  const [errorsOnly, setErrorsOnly] = useState(false);
  const [matchesOnly, setMatchesOnly] = useState(false);
  const [following, setFollowing] = useState(true);
  const [selectedLine, setSelectedLine] = useState(/** @type {number | null} */ (null));
  const searchInput = useRef(/** @type {HTMLInputElement | null} */ (null));
  const isSearching = text !== "" || errorsOnly;
  const matches = isSearching ? buffer.find({ text, errorsOnly }) : [];
  // A search highlights lines; "Errors" and "Matches only" filter them.
  const isFiltered = isSearching && (matchesOnly || (errorsOnly && text === ""));
  const rowCount = isFiltered ? matches.length : buffer.lines.length;
  const { box, from, to, scrollToRow } = useVirtualRows({ count: rowCount, height: LINE_HEIGHT });
  /** @param {number} index */
  const numberAt = (index) => (isFiltered ? matches[index] : buffer.dropped + index);

  useLayoutEffect(() => {
    if (following && box.current) box.current.scrollTop = box.current.scrollHeight;
  }, [following, rowCount, version]);
  useFollowOnScroll(box, setFollowing);

  /** @param {number} step */
  const moveToMatch = (step) => {
    if (matches.length === 0) return;
    const currentMatch = selectedLine === null ? -1 : matches.findIndex((number) => number >= selectedLine);
    const next = selectedLine === null ? (step > 0 ? 0 : matches.length - 1) : (currentMatch + step + matches.length) % matches.length;
    setFollowing(false);
    setSelectedLine(matches[next]);
    scrollToRow(isFiltered ? next : matches[next] - buffer.dropped);
  };
  useShortcuts({
    f: { title: "Follow the log", run: () => setFollowing(!following) },
    s: { title: "Search the log", run: () => searchInput.current?.focus() },
    n: { title: "Next match", run: () => moveToMatch(1), when: () => isSearching },
    N: { title: "Previous match", run: () => moveToMatch(-1), when: () => isSearching },
  });
  const matchIndex = selectedLine === null ? -1 : matches.indexOf(selectedLine);
  const openedLine = selectedLine === null ? undefined : buffer.lineAt(selectedLine);
  const visibleLineNumbers = Array.from({ length: Math.max(0, to - from) }, (_, index) => numberAt(from + index));

  return html`<${Panel} title="Log" flush aside=${html`<span role="status">${lineCountText(buffer, phase)}</span>`}>
    <div class="log-tools" role="search" aria-label="Log search">
      <input ref=${searchInput} type="search" class="log-search" aria-label="Search the log" placeholder="Search the log" value=${text} autocomplete="off" spellcheck=${false}
        onInput=${(/** @type {Event} */ event) => { setText(/** @type {HTMLInputElement} */ (event.target).value); setSelectedLine(null); }}
        onKeyDown=${(/** @type {KeyboardEvent} */ event) => { if (event.key === "Enter") { event.preventDefault(); moveToMatch(event.shiftKey ? -1 : 1); } }} />
      ${isSearching && html`<span class="number faint" role="status">${matchIndex >= 0 ? `${formatCount(matchIndex + 1)} of ${formatCount(matches.length)}` : `${pluralize(matches.length, "line")} found`}</span>
        <${Button} small icon="up" label="Previous match (N)" disabled=${matches.length === 0} onClick=${() => moveToMatch(-1)} />
        <${Button} small icon="down" label="Next match (n)" disabled=${matches.length === 0} onClick=${() => moveToMatch(1)} />`}
      ${text !== "" && html`<${Button} small pressed=${matchesOnly} onClick=${() => setMatchesOnly(!matchesOnly)}>Matches only<//>`}
      <${Button} small pressed=${errorsOnly} onClick=${() => { setErrorsOnly(!errorsOnly); setSelectedLine(null); }}>Errors<//>
      <span class="log-buttons">
        <${Button} small pressed=${following} onClick=${() => setFollowing(!following)} title="Stay at the end (f)">Follow<//>
        <${Button} small icon="download" onClick=${() => runWithToast(() => downloadLog(id), "Log downloaded")}>Download<//>
      </span>
    </div>
    ${error && html`<${Notice} tone="warn">The log could not be followed: ${errorText(error)}<//>`}
    ${buffer.dropped > 0 && html`<${Notice}>This page shows the last ${formatCount(buffer.lines.length)} lines. The download has all of them.<//>`}
    <div class="log" ref=${box} tabindex="0" role="log" aria-label="Log" aria-live="off"
      style=${{ height: `${Math.min(MAX_LOG_HEIGHT, Math.max(MIN_LOG_HEIGHT, buffer.lines.length * LINE_HEIGHT + 18))}px` }}>
      <div class="log-spacer" style=${{ height: `${rowCount * LINE_HEIGHT}px` }}>
        <ol style=${{ transform: `translateY(${from * LINE_HEIGHT}px)` }}>
          ${visibleLineNumbers.map((number) => html`<${LogLineRow} key=${number} number=${number} line=${buffer.lineAt(number)} searchText=${text} current=${number === selectedLine}
            onOpen=${() => setSelectedLine(number === selectedLine ? null : number)} />`)}
        </ol>
      </div>
      ${rowCount === 0 && html`<p class="log-empty soft">${emptyLogText(buffer, isSearching, phase)}</p>`}
    </div>
    ${openedLine && html`<div class="log-opened"><header><b>Line ${formatCount(/** @type {number} */ (selectedLine) + 1)}</b><span class="faint">${openedLine.level}</span><${CopyButton} text=${openedLine.message} label="line" /></header>
      <pre>${openedLine.message}</pre></div>`}
  <//>`;
}

/** Scrolling up stops following; scrolling to the end starts it.
 * @param {{current: HTMLDivElement | null}} box @param {(following: boolean) => void} setFollowing */
function useFollowOnScroll(box, setFollowing) {
  useEffect(() => {
    const element = box.current;
    if (!element) return undefined;
    let previousTop = 0;
    const updateFollowing = () => {
      const { scrollTop, clientHeight, scrollHeight } = element;
      if (scrollTop < previousTop) setFollowing(false);
      else if (scrollTop > previousTop && scrollTop + clientHeight >= scrollHeight - 2) setFollowing(true);
      previousTop = scrollTop;
    };
    element.addEventListener("scroll", updateFollowing, { passive: true });
    return () => element.removeEventListener("scroll", updateFollowing);
  }, []);
}

/** @param {LogBuffer} buffer @param {string} phase */
function lineCountText(buffer, phase) {
  return `${pluralize(buffer.nextNumber, "line")}${{ reading: ", live", ended: "", waiting: ", not live" }[phase]}`;
}

/** @param {LogBuffer} buffer @param {boolean} isSearching @param {string} phase */
function emptyLogText(buffer, isSearching, phase) {
  if (isSearching && buffer.lines.length > 0) return "No line matches.";
  return phase === "ended" ? "No log lines." : "No log lines yet. New lines appear here.";
}

/** Downloads the complete log as text. @param {string} id */
async function downloadLog(id) {
  const { logs } = /** @type {{logs: LogLine[]}} */ (await api.get(`/api/v1/tasks/${encodeSegment(id)}/logs`));
  const blob = new Blob(logs.map(({ time, level, message }) => `${time} ${level} ${message}\n`), { type: "text/plain" });
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = `${id.replaceAll(/[^\w.-]/g, "_")}.log`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
