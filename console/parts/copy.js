// Copying: a text, or a call of the API as one would write it in a terminal. The token is never copied.

import { address } from "../data/api.js";
import { toast } from "./toast.js";
import { Button } from "./button.js";
import { html, useLayoutEffect, useRef, useState } from "./ui.js";

/** @param {string} text @param {string} [what] */
export async function copy(text, what = "Text") {
  try {
    await navigator.clipboard.writeText(text);
    toast({ text: `${what} copied` });
  } catch {
    // Without HTTPS browsers have no clipboard for pages: the person copies it.
    toast({ text: "The browser blocked copying. Copy it from here:", detail: text, ms: 20_000 });
  }
}

/** @param {{text: string, what?: string}} props */
export function CopyText({ text, what = "text" }) {
  return html`<${Button} small kind="quiet" icon="copy" label=${`Copy ${what}`} onClick=${() => copy(text, what)} />`;
}

/** A word as a shell takes it. @param {string} word */
export function quoted(word) {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}

/** A command of ours: `pointsman tasks retry ID`.
 * @param {...(string | null | undefined | false)} words */
export function cli(...words) {
  return ["pointsman", ...words.filter((word) => typeof word === "string" && word !== "")].map((word) => quoted(String(word))).join(" ");
}

/** A call of the API.
 * @typedef {{method?: string, path: string, query?: import("../data/api.js").Query, body?: unknown}} Call */

/** @param {Call} call */
export function curl({ method = "GET", path, query, body }) {
  const words = ["curl", '-H "Authorization: Bearer $POINTSMAN_TOKEN"'];
  const json = body !== undefined;
  if (method !== (json ? "POST" : "GET")) words.push("-X", method);
  words.push(quoted(location.origin + address(path, query)));
  if (json) words.push("--json", quoted(JSON.stringify(body)));
  return words.join(" ");
}

/** What a screen shows or does, as curl and as our own command.
 * @param {{call: Call, cli?: string | null}} props */
export function CopyAs({ call, cli }) {
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
    copy(text, what);
  };
  const command = curl(call);
  return html`<div class="menu-box" ref=${box}>
    <${Button} icon="copy" onClick=${() => setOpen(!open)} expanded=${open}>Copy as<//>
    ${open && html`<div class="menu">
      <button type="button" onClick=${() => take(command, "curl command")}><b>curl</b><code>${command}</code></button>
      ${cli && html`<button type="button" onClick=${() => take(cli, "CLI command")}><b>CLI</b><code>${cli}</code></button>`}
      <button type="button" onClick=${() => take(location.href, "Link")}><b>Link</b><code>${location.hash}</code></button>
    </div>`}
  </div>`;
}
