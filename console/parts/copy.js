// Copies texts, and API calls as shell commands. The token is never copied.

import { showToast } from "./toast.js";
import { Button } from "./button.js";
import { lazyComponent } from "./lazy.js";
import { html, useLayoutEffect, useRef, useState } from "./ui.js";

/** @param {string} text @param {string} [label] */
export async function copyToClipboard(text, label = "Text") {
  try {
    await navigator.clipboard.writeText(text);
    showToast({ text: `${label} copied` });
  } catch {
    // Without HTTPS there is no clipboard API: the user copies the text.
    showToast({ text: "The browser blocked copying. Copy it from here:", detail: text, ms: 20_000 });
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
  const [open, setOpen] = useState(false);
  const box = useRef(/** @type {HTMLDivElement | null} */ (null));
  useLayoutEffect(() => {
    if (!open) return undefined;
    /** @param {Event} event */
    const closeOnOutside = (event) => {
      const outside = event instanceof KeyboardEvent ? event.key === "Escape" : !box.current?.contains(/** @type {Node} */ (event.target));
      if (outside) setOpen(false);
    };
    document.addEventListener("pointerdown", closeOnOutside);
    document.addEventListener("keydown", closeOnOutside);
    return () => {
      document.removeEventListener("pointerdown", closeOnOutside);
      document.removeEventListener("keydown", closeOnOutside);
    };
  }, [open]);
  return html`<div class="menu-box" ref=${box}>
    <${Button} icon="copy" onClick=${() => setOpen(!open)} expanded=${open}>Copy as<//>
    ${open && html`<${CopyMenuItems} call=${call} cli=${cli} onCopied=${() => setOpen(false)} />`}
  </div>`;
}
