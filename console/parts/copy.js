// Copies texts, and API calls as shell commands. The token is never copied.

import { showToast } from "./toast.js";
import { Button } from "./button.js";
import { lazyComponent } from "./lazy-loading.js";
import { html, useLayoutEffect, useRef, useState } from "./ui.js";

/** @param {string} text @param {string} [label] */
export async function copyToClipboard(text, label = "Text") {
  try {
    await navigator.clipboard.writeText(text);
    showToast({ text: `${label} copied` });
  } catch {
    // Without HTTPS there is no clipboard API: the user copies the text.
    showToast({ text: "The browser blocked copying. Copy it from here:", detail: text, durationMs: 20_000 });
  }
}

/** @param {{text: string, label?: string}} props */
export function CopyButton({ text, label = "text" }) {
  return html`<${Button} small kind="quiet" icon="copy" label=${`Copy ${label}`} onClick=${() => copyToClipboard(text, label)} />`;
}

/** Quotes a word for a shell. @param {string} word */
export function shellQuote(word) {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}

/** A command of the CLI: `pointsman tasks retry ID`.
 * @param {...(string | null | undefined | false)} words */
export function cliCommand(...words) {
  return ["pointsman", ...words.filter((word) => typeof word === "string" && word !== "")].map((word) => shellQuote(String(word))).join(" ");
}

/** A call of the API.
 * @typedef {{method?: string, path: string, query?: import("../data/api.js").UrlQuery, body?: unknown}} ApiCall */

const CopyMenuItems = lazyComponent(() => import("./copy-menu.js"), "CopyMenuItems", "../styles/dialog.css");

/** A menu that copies an API call as curl, as CLI command and as link.
 * @param {{call: ApiCall, cli?: string | null}} props */
export function CopyAsMenu({ call, cli }) {
  const [isOpen, setOpen] = useState(false);
  const box = useRef(/** @type {HTMLDivElement | null} */ (null));
  useLayoutEffect(() => {
    if (!isOpen) return undefined;
    /** @param {Event} event */
    const closeOnOutsideOrEscape = (event) => {
      const shouldClose = event instanceof KeyboardEvent ? event.key === "Escape" : !box.current?.contains(/** @type {Node} */ (event.target));
      if (shouldClose) setOpen(false);
    };
    document.addEventListener("pointerdown", closeOnOutsideOrEscape);
    document.addEventListener("keydown", closeOnOutsideOrEscape);
    return () => {
      document.removeEventListener("pointerdown", closeOnOutsideOrEscape);
      document.removeEventListener("keydown", closeOnOutsideOrEscape);
    };
  }, [isOpen]);
  return html`<div class="menu-box" ref=${box}>
    <${Button} icon="copy" onClick=${() => setOpen(!isOpen)} expanded=${isOpen}>Copy as<//>
    ${isOpen && html`<${CopyMenuItems} call=${call} cli=${cli} onCopied=${() => setOpen(false)} />`}
  </div>`;
}
