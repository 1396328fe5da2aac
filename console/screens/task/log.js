// The log of a task: as it grows, with search and download. Only the lines that can be seen are in the page.

import { api, segment } from "../../data/api.js";
import { said } from "../../data/problem.js";
import { count, counted } from "../../data/numbers.js";
import { Button } from "../../parts/button.js";
import { CopyText } from "../../parts/copy.js";
import { Panel } from "../../parts/facts.js";
import { Notice } from "../../parts/states.js";
import { attempt } from "../../parts/toast.js";
import { html, useEffect, useLayoutEffect, useRef, useState } from "../../parts/ui.js";
import { useWindow } from "../../parts/virtual.js";
import { useShortcuts } from "../../shell/keys.js";
import { Line } from "./line.js";
import { useLog } from "./tail.js";

/** @typedef {import("./book.js").Book} Book */
/** @typedef {import("../../data/bodies.js").LogLine} LogLine */

const HEIGHT = 20;
/** How high the box is: as its lines need, between these. */
const LEAST = 84;
const MOST = 460;

/** @param {{id: string, over: boolean, turn: number}} props `over`: the task has ended; `turn` counts its attempts */
export function Log({ id, over, turn }) {
  const { book, phase, error, version } = useLog(id, over, turn);
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
  const { box, from, to, seek } = useWindow({ count: size, height: HEIGHT });
  /** @param {number} index */
  const numberAt = (index) => (narrowed ? found[index] : book.dropped + index);

  useLayoutEffect(() => {
    if (following && box.current) box.current.scrollTop = box.current.scrollHeight;
  }, [following, size, version]);
  useUserScroll(box, setFollowing);

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

  return html`<${Panel} title="Log" flush aside=${html`<span role="status">${says(book, phase)}</span>`}>
    <div class="log-tools" role="search" aria-label="Log search">
      <input ref=${search} type="search" class="log-search" aria-label="Search the log" placeholder="Search the log" value=${text} autocomplete="off" spellcheck=${false}
        onInput=${(/** @type {Event} */ event) => { setText(/** @type {HTMLInputElement} */ (event.target).value); setAt(null); }}
        onKeyDown=${(/** @type {KeyboardEvent} */ event) => { if (event.key === "Enter") { event.preventDefault(); move(event.shiftKey ? -1 : 1); } }} />
      ${looking && html`<span class="number faint" role="status">${place >= 0 ? `${count(place + 1)} of ${count(found.length)}` : `${counted(found.length, "line")} found`}</span>
        <${Button} small icon="up" label="Previous match (N)" disabled=${found.length === 0} onClick=${() => move(-1)} />
        <${Button} small icon="down" label="Next match (n)" disabled=${found.length === 0} onClick=${() => move(1)} />`}
      ${text !== "" && html`<${Button} small pressed=${only} onClick=${() => setOnly(!only)}>Matches only<//>`}
      <${Button} small pressed=${errors} onClick=${() => { setErrors(!errors); setAt(null); }}>Errors<//>
      <span class="log-end">
        <${Button} small pressed=${following} onClick=${() => setFollowing(!following)} title="Stay at the end (f)">Follow<//>
        <${Button} small icon="download" onClick=${() => attempt(() => download(id), "Log downloaded")}>Download<//>
      </span>
    </div>
    ${error && html`<${Notice} tone="warn">The log could not be followed: ${said(error)}<//>`}
    ${book.dropped > 0 && html`<${Notice}>This page shows the last ${count(book.lines.length)} lines. The download has all of them.<//>`}
    <div class="log" ref=${box} tabindex="0" role="log" aria-label="Log" aria-live="off"
      style=${{ height: `${Math.min(MOST, Math.max(LEAST, book.lines.length * HEIGHT + 18))}px` }}>
      <div class="log-room" style=${{ height: `${size * HEIGHT}px` }}>
        <ol style=${{ transform: `translateY(${from * HEIGHT}px)` }}>
          ${numbers.map((number) => html`<${Line} key=${number} number=${number} line=${book.line(number)} mark=${text} current=${number === at}
            onOpen=${() => setAt(number === at ? null : number)} />`)}
        </ol>
      </div>
      ${size === 0 && html`<p class="log-none soft">${nothing(book, looking, phase)}</p>`}
    </div>
    ${opened && html`<div class="log-opened"><header><b>Line ${count(/** @type {number} */ (at) + 1)}</b><span class="faint">${opened.level}</span><${CopyText} text=${opened.message} what="line" /></header>
      <pre>${opened.message}</pre></div>`}
  <//>`;
}

/** Who scrolls up wants to read; who scrolls to the end wants to follow.
 * @param {{current: HTMLDivElement | null}} box @param {(following: boolean) => void} set */
function useUserScroll(box, set) {
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

/** @param {Book} book @param {string} phase */
function says(book, phase) {
  return `${counted(book.end, "line")}${{ reading: ", live", ended: "", waiting: ", not live" }[phase]}`;
}

/** @param {Book} book @param {boolean} looking @param {string} phase */
function nothing(book, looking, phase) {
  if (looking && book.lines.length > 0) return "No line matches.";
  return phase === "ended" ? "No log lines." : "No log lines yet. New lines appear here.";
}

/** All of it, as the server has it, as text. @param {string} id */
async function download(id) {
  const { logs } = /** @type {{logs: LogLine[]}} */ (await api.get(`/api/v1/tasks/${segment(id)}/logs`));
  const blob = new Blob(logs.map(({ time, level, message }) => `${time} ${level} ${message}\n`), { type: "text/plain" });
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = `${id.replaceAll(/[^\w.-]/g, "_")}.log`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
