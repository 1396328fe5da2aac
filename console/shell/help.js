// What the keys do, here and now.

import { Dialog } from "../parts/dialog.js";
import { html } from "../parts/ui.js";
import { layersChanged, shortcuts } from "./keys.js";
import { opened } from "./panes.js";

/** @param {string} key */
function shown(key) {
  return key.startsWith("ctrl+") ? `Ctrl ${key.slice(5).toUpperCase()}` : key;
}

export function Help() {
  layersChanged.value;
  return html`<${Dialog} title="Keyboard shortcuts" onClose=${() => { opened.value = null; }}>
    <dl class="keys">${[...shortcuts()].map(([key, { what }]) => html`<div key=${key}><dt><kbd>${shown(key)}</kbd></dt><dd>${what}</dd></div>`)}</dl>
    <p class="faint">Search finds a task or event id, an order path, an object key or a handler name.</p>
  <//>`;
}
