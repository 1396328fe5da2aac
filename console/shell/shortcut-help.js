// The dialog with the keyboard shortcuts.

import { Dialog } from "../parts/dialog.js";
import { html } from "../parts/ui.js";
import { shortcutLayersVersion, listActiveShortcuts } from "./shortcuts.js";
import { currentPane } from "./panes.js";

/** @param {string} key */
function formatKey(key) {
  return key.startsWith("ctrl+") ? `Ctrl ${key.slice(5).toUpperCase()}` : key;
}

export function ShortcutHelp() {
  shortcutLayersVersion.value;
  return html`<${Dialog} title="Keyboard shortcuts" onClose=${() => { currentPane.value = null; }}>
    <dl class="shortcut-list">${[...listActiveShortcuts()].map(([key, { title }]) => html`<div key=${key}><dt><kbd>${formatKey(key)}</kbd></dt><dd>${title}</dd></div>`)}</dl>
    <p class="faint">Search finds a task or event id, an order path, an object key or a handler name.</p>
  <//>`;
}
