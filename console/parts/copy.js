// Copying: a text, or a call of the API as one would write it in a terminal. The token is never copied.

import { buildUrl } from "../data/api.js";
import { showToast } from "./toast.js";
import { Button } from "./button.js";
import { html, useLayoutEffect, useRef, useState } from "./ui.js";

/** @param {string} text @param {string} [what] */
export async function copyToClipboard(text, what = "Text") {
  try {
    await navigator.clipboard.writeText(text);
    showToast({ text: `${what} copied` });
  } catch {
    // Without HTTPS browsers have no clipboard for pages: the person copies it.
    showToast({ text: "The browser blocked copying. Copy it from here:", detail: text, ms: 20_000 });
  }
}

/** @param {{text: string, what?: string}} props */
export function CopyButton({ text, what = "text" }) {
  return html`<${Button} small kind="quiet" icon="copy" label=${`Copy ${what}`} onClick=${() => copyToClipboard(text, what)} />`;
}

/** A word as a shell takes it. @param {string} word */
export function shellQuote(word) {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}

/** A command of ours: `pointsman tasks retry ID`.
 * @param {...(string | null | undefined | false)} words */
export function cliCommand(...words) {
  return ["pointsman", ...words.filter((word) => typeof word === "string" && word !== "")].map((word) => shellQuote(String(word))).join(" ");
}

/** A call of the API.
 * @typedef {{method?: string, path: string, query?: import("../data/api.js").UrlQuery, body?: unknown}} ApiCall */

/** @param {ApiCall} call */
export function curlCommand({ method = "GET", path, query, body }) {
  const words = ["curl", '-H "Authorization: Bearer $POINTSMAN_TOKEN"'];
  const json = body !== undefined;
  if (method !== (json ? "POST" : "GET")) words.push("-X", method);
  words.push(shellQuote(location.origin + buildUrl(path, query)));
  if (json) words.push("--json", shellQuote(JSON.stringify(body)));
  return words.join(" ");
}

/** What a screen shows or does, as curl and as our own command.
 * @param {{call: ApiCall, cli?: string | null}} props */
export function CopyAsMenu({ call, cli }) {
  const [open, setOpen] = useState(false);
  const box = useRef(/** @type {HTMLDivElement | null} */ (null));
  useLayoutEffect(() => {
    if (!open) return undefined;
    /** @param {Event} event */
    const away = (event) => {
      const outside = event instanceof KeyboardEvent ? event.key === "Escape" : !box.current?.contains(/** @type {Node} */ (event.target));
      if (outside) setOpen(false);
    };
    document.addEventListener("pointerdown", away);
    document.addEventListener("keydown", away);
    return () => {
      document.removeEventListener("pointerdown", away);
      document.removeEventListener("keydown", away);
    };
  }, [open]);
  /** @param {string} text @param {string} what */
  const take = (text, what) => {
    setOpen(false);
    copyToClipboard(text, what);
  };
  const command = curlCommand(call);
  return html`<div class="menu-box" ref=${box}>
    <${Button} icon="copy" onClick=${() => setOpen(!open)} expanded=${open}>Copy as<//>
    ${open && html`<div class="menu">
      <button type="button" onClick=${() => take(command, "curl command")}><b>curl</b><code>${command}</code></button>
      ${cli && html`<button type="button" onClick=${() => take(cli, "CLI command")}><b>CLI</b><code>${cli}</code></button>`}
      <button type="button" onClick=${() => take(location.href, "Link")}><b>Link</b><code>${location.hash}</code></button>
    </div>`}
  </div>`;
}
