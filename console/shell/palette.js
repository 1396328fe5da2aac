// The palette: commands (Ctrl-K) and search (/).

import { api } from "../data/api.js";
import { Dialog } from "../parts/dialog.js";
import { classNames, html, useEffect, useId, useRef, useState } from "../parts/ui.js";
import { listCommands } from "./commands.js";
import { findSearchTargets } from "./search-targets.js";
import { currentPane } from "./panes.js";
import { screenExists, navigate, screenPaths } from "./router.js";

/** @typedef {{kind: string, title: string, run: () => void}} PaletteChoice */

/** @param {{mode: "search" | "commands"}} props */
export function CommandPalette({ mode }) {
  const [text, setText] = useState("");
  const [selectedIndex, setSelectedIndex] = useState(0);
  const [handlers, setHandlers] = useState(/** @type {string[]} */ ([]));
  const id = useId();
  const listElement = useRef(/** @type {HTMLUListElement | null} */ (null));
  useEffect(() => {
    if (!screenExists(screenPaths.handler("x"))) return;
    api.get("/api/v1/handlers").then(({ handlers }) => setHandlers(handlers.map((/** @type {{name: string}} */ handler) => handler.name)), () => {});
  }, []);
  const choices = findChoices(mode, text, handlers);
  const highlighted = Math.min(selectedIndex, choices.length - 1);
  useEffect(() => {
    listElement.current?.querySelector('[aria-selected="true"]')?.scrollIntoView({ block: "nearest" });
  }, [highlighted]);
  const close = () => {
    currentPane.value = null;
  };
  /** @param {PaletteChoice | undefined} choice */
  const runChoice = (choice) => {
    if (!choice) return;
    close();
    choice.run();
  };
  /** @param {KeyboardEvent} event */
  const handleKeyDown = (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) setSelectedIndex((highlighted + step + choices.length) % Math.max(1, choices.length));
    else if (event.key === "Enter") runChoice(choices[highlighted]);
    else return;
    event.preventDefault();
  };
  return html`<${Dialog} title=${mode === "search" ? "Search" : "Commands"} hideTitle class="palette" onClose=${close}>
    <input class="palette-input" value=${text} autofocus autocomplete="off" spellcheck=${false} role="combobox" aria-expanded="true"
      aria-controls=${`${id}-list`} aria-activedescendant=${choices[highlighted] && `${id}-${highlighted}`}
      aria-label=${mode === "search" ? "Search" : "Commands"}
      placeholder=${mode === "search" ? "Task id, event id, object key or handler name…" : "Go to a screen or run a command…"}
      onInput=${(/** @type {Event} */ event) => { setText(/** @type {HTMLInputElement} */ (event.target).value); setSelectedIndex(0); }} onKeyDown=${handleKeyDown} />
    <ul class="palette-list" role="listbox" aria-label="Results" id=${`${id}-list`} ref=${listElement}>
      ${choices.map((choice, index) => html`<li key=${`${choice.kind} ${choice.title}`} id=${`${id}-${index}`} role="option" aria-selected=${index === highlighted}
        class=${classNames(index === highlighted && "selected")} onClick=${() => runChoice(choice)}>
        <span class="faint">${choice.kind}</span><span class="palette-title">${choice.title}</span></li>`)}
    </ul>
    ${choices.length === 0 && html`<p class="palette-empty faint">${text ? "No results." : "Type to search."}</p>`}
  <//>`;
}

/** @param {"search" | "commands"} mode @param {string} text @param {string[]} handlers
 * @returns {PaletteChoice[]} */
function findChoices(mode, text, handlers) {
  const searchText = text.trim().toLowerCase();
  const matchingHandlers = searchText ? handlers.filter((name) => name.toLowerCase().includes(searchText)).slice(0, 8) : [];
  /** @type {PaletteChoice[]} */
  const targets = [
    ...matchingHandlers.map((name) => ({ kind: "Handler", title: name, run: () => navigate(screenPaths.handler(name)) })),
    ...findSearchTargets(text).map(({ kind, text, to }) => ({ kind, title: text, run: () => navigate(to) })),
  ];
  const words = searchText.split(/\s+/).filter(Boolean);
  const matchingCommands = listCommands()
    .filter(({ title, keywords = "", kind = "" }) => words.every((word) => `${kind} ${title} ${keywords}`.toLowerCase().includes(word)))
    .map(({ kind = "", title, run }) => ({ kind, title, run }));
  return mode === "search" ? [...targets, ...(searchText ? matchingCommands : [])] : [...matchingCommands, ...targets];
}
