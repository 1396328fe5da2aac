// Keyboard shortcuts in layers: the screen takes precedence over the shell.

import { useEffect, useRef } from "../vendor/preact-hooks.js";
import { signal } from "../vendor/signals.js";

/** If `when` returns false, the key is passed to the next layer.
 * @typedef {{title: string, run: (event: KeyboardEvent) => void, when?: () => boolean, hidden?: boolean}} Shortcut */
/** Shortcuts by `KeyboardEvent.key`; `ctrl+k` is also ⌘K.
 * @typedef {Record<string, Shortcut>} Shortcuts */

/** Active layers, topmost last. @type {{current: Shortcuts}[]} */
const shortcutLayers = [];
/** Increases when a layer is added or removed, so that the help dialog renders again. */
export const shortcutLayersVersion = signal(0);

/** @param {Shortcuts} shortcuts */
export function useShortcuts(shortcuts) {
  const layer = useRef(shortcuts);
  layer.current = shortcuts;
  useEffect(() => {
    shortcutLayers.push(layer);
    shortcutLayersVersion.value += 1;
    return () => {
      shortcutLayers.splice(shortcutLayers.indexOf(layer), 1);
      shortcutLayersVersion.value += 1;
    };
  }, []);
}

/** Active shortcuts, topmost layer first, each key once. */
export function listActiveShortcuts() {
  /** @type {Map<string, Shortcut>} */
  const byKey = new Map();
  for (const { current } of [...shortcutLayers].reverse()) {
    for (const [key, shortcut] of Object.entries(current)) {
      if (!byKey.has(key) && !shortcut.hidden) byKey.set(key, shortcut);
    }
  }
  return byKey;
}

/** @param {EventTarget | null} target */
function isTextInput(target) {
  return target instanceof HTMLElement
    && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName))
    && !(target instanceof HTMLInputElement && /^(checkbox|radio|button)$/.test(target.type));
}

addEventListener("keydown", (event) => {
  if (event.defaultPrevented || event.altKey || event.isComposing) return;
  const hasModifier = event.ctrlKey || event.metaKey;
  const key = hasModifier ? `ctrl+${event.key.toLowerCase()}` : event.key;
  if (!hasModifier && isTextInput(event.target)) return;
  // A dialog has its own keys; Enter activates a focused button or link.
  if (!hasModifier && document.querySelector("dialog[open]")) return;
  if (key === "Enter" && event.target instanceof Element && event.target.closest("a, button, summary")) return;
  for (const { current } of [...shortcutLayers].reverse()) {
    const shortcut = current[key];
    if (!shortcut || shortcut.when?.() === false) continue;
    event.preventDefault();
    shortcut.run(event);
    return;
  }
});
