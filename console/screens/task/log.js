// The log of a task: as it grows, with search and download. Only the lines that can be seen are in the page.

import { api, encodeSegment } from "../../data/api.js";
import { errorText } from "../../data/problem.js";
import { formatCount, pluralize } from "../../data/numbers.js";
import { Button } from "../../parts/button.js";
import { CopyButton } from "../../parts/copy.js";
import { Panel } from "../../parts/panel.js";
import { Notice } from "../../parts/states.js";
import { runWithToast } from "../../parts/toast.js";
import { html, useEffect, useLayoutEffect, useRef, useState } from "../../parts/ui.js";
import { useVirtualRows } from "../../parts/virtual-rows.js";
import { useShortcuts } from "../../shell/keys.js";
import { LogLineRow } from "./log-line.js";
import { useTaskLog } from "./log-follower.js";

/** @typedef {import("./log-buffer.js").LogBuffer} LogBuffer */
/** @typedef {import("../../data/api-types.js").LogLine} LogLine */

const LINE_HEIGHT = 20;
/** How high the box is: as its lines need, between these. */
const MIN_HEIGHT = 84;
const MAX_HEIGHT = 460;

/** @param {{id: string, over: boolean, turn: number}} props `over`: the task has ended; `turn` counts its attempts */
export function LogPanel({ id, over, turn }) {
  const { book, phase, error, version } = useTaskLog(id, over, turn);
  const [text, setText] = useState("");
  const [errors, setErrors] = useState(false);
  const [only, setOnly] = useState(false);
  const [following, setFollowing] = useState(true);
  const [at, setAt] = useState(/** @type {number | null} */ (null));
  const search = useRef(/** @type {HTMLInputElement | null} */ (null));
  const looking = text !== "" || errors;
  const found = looking ? book.find({ text, errors }) : [];
  // Errors alone, or matches alone, are another list; a search only marks.
  const narrowed = looking && (only || (errors && text === ""));
  const size = narrowed ? found.length : book.lines.length;
  const { box, from, to, seek } = useVirtualRows({ count: size, height: LINE_HEIGHT });
  /** @param {number} index */
  const numberAt = (index) => (narrowed ? found[index] : book.dropped + index);

  useLayoutEffect(() => {
    if (following && box.current) box.current.scrollTop = box.current.scrollHeight;
  }, [following, size, version]);
  useFollowOnScroll(box, setFollowing);

  /** @param {number} step */
  const move = (step) => {
    if (found.length === 0) return;
    const here = at === null ? -1 : found.findIndex((number) => number >= at);
    const next = at === null ? (step > 0 ? 0 : found.length - 1) : (here + step + found.length) % found.length;
    setFollowing(false);
    setAt(found[next]);
    seek(narrowed ? next : found[next] - book.dropped);
  };
  useShortcuts({
    f: { what: "Follow the log", run: () => setFollowing(!following) },
    s: { what: "Search the log", run: () => search.current?.focus() },
    n: { what: "Next match", run: () => move(1), when: () => looking },
    N: { what: "Previous match", run: () => move(-1), when: () => looking },
  });
  const place = at === null ? -1 : found.indexOf(at);
  const opened = at === null ? undefined : book.line(at);
  const numbers = Array.from({ length: Math.max(0, to - from) }, (_, index) => numberAt(from + index));

  return html`<${Panel} title="Log" flush aside=${html`<span role="status">${lineCountText(book, phase)}</span>`}>
    <div class="log-tools" role="search" aria-label="Log search">
      <input ref=${search} type="search" class="log-search" aria-label="Search the log" placeholder="Search the log" value=${text} autocomplete="off" spellcheck=${false}
        onInput=${(/** @type {Event} */ event) => { setText(/** @type {HTMLInputElement} */ (event.target).value); setAt(null); }}
        onKeyDown=${(/** @type {KeyboardEvent} */ event) => { if (event.key === "Enter") { event.preventDefault(); move(event.shiftKey ? -1 : 1); } }} />
      ${looking && html`<span class="number faint" role="status">${place >= 0 ? `${formatCount(place + 1)} of ${formatCount(found.length)}` : `${pluralize(found.length, "line")} found`}</span>
        <${Button} small icon="up" label="Previous match (N)" disabled=${found.length === 0} onClick=${() => move(-1)} />
        <${Button} small icon="down" label="Next match (n)" disabled=${found.length === 0} onClick=${() => move(1)} />`}
      ${text !== "" && html`<${Button} small pressed=${only} onClick=${() => setOnly(!only)}>Matches only<//>`}
      <${Button} small pressed=${errors} onClick=${() => { setErrors(!errors); setAt(null); }}>Errors<//>
      <span class="log-end">
        <${Button} small pressed=${following} onClick=${() => setFollowing(!following)} title="Stay at the end (f)">Follow<//>
        <${Button} small icon="download" onClick=${() => runWithToast(() => downloadLog(id), "Log downloaded")}>Download<//>
      </span>
    </div>
    ${error && html`<${Notice} tone="warn">The log could not be followed: ${errorText(error)}<//>`}
    ${book.dropped > 0 && html`<${Notice}>This page shows the last ${formatCount(book.lines.length)} lines. The download has all of them.<//>`}
    <div class="log" ref=${box} tabindex="0" role="log" aria-label="Log" aria-live="off"
      style=${{ height: `${Math.min(MAX_HEIGHT, Math.max(MIN_HEIGHT, book.lines.length * LINE_HEIGHT + 18))}px` }}>
      <div class="log-room" style=${{ height: `${size * LINE_HEIGHT}px` }}>
        <ol style=${{ transform: `translateY(${from * LINE_HEIGHT}px)` }}>
          ${numbers.map((number) => html`<${LogLineRow} key=${number} number=${number} line=${book.line(number)} mark=${text} current=${number === at}
            onOpen=${() => setAt(number === at ? null : number)} />`)}
        </ol>
      </div>
      ${size === 0 && html`<p class="log-none soft">${emptyText(book, looking, phase)}</p>`}
    </div>
    ${opened && html`<div class="log-opened"><header><b>Line ${formatCount(/** @type {number} */ (at) + 1)}</b><span class="faint">${opened.level}</span><${CopyButton} text=${opened.message} what="line" /></header>
      <pre>${opened.message}</pre></div>`}
  <//>`;
}

/** Who scrolls up wants to read; who scrolls to the end wants to follow.
 * @param {{current: HTMLDivElement | null}} box @param {(following: boolean) => void} set */
function useFollowOnScroll(box, set) {
  useEffect(() => {
    const element = box.current;
    if (!element) return undefined;
    let before = 0;
    const look = () => {
      const { scrollTop, clientHeight, scrollHeight } = element;
      if (scrollTop < before) set(false);
      else if (scrollTop > before && scrollTop + clientHeight >= scrollHeight - 2) set(true);
      before = scrollTop;
    };
    element.addEventListener("scroll", look, { passive: true });
    return () => element.removeEventListener("scroll", look);
  }, []);
}

/** @param {LogBuffer} book @param {string} phase */
function lineCountText(book, phase) {
  return `${pluralize(book.end, "line")}${{ reading: ", live", ended: "", waiting: ", not live" }[phase]}`;
}

/** @param {LogBuffer} book @param {boolean} looking @param {string} phase */
function emptyText(book, looking, phase) {
  if (looking && book.lines.length > 0) return "No line matches.";
  return phase === "ended" ? "No log lines." : "No log lines yet. New lines appear here.";
}

/** All of it, as the server has it, as text. @param {string} id */
async function downloadLog(id) {
  const { logs } = /** @type {{logs: LogLine[]}} */ (await api.get(`/api/v1/tasks/${encodeSegment(id)}/logs`));
  const blob = new Blob(logs.map(({ time, level, message }) => `${time} ${level} ${message}\n`), { type: "text/plain" });
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = `${id.replaceAll(/[^\w.-]/g, "_")}.log`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
