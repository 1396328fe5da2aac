// The items of the "Copy as" menu: curl, CLI and link. Loaded when the menu is first opened.

import { addQuery } from "../data/api.js";
import { copyToClipboard, shellQuote } from "./copy.js";
import { html } from "./ui.js";

/** @typedef {import("./copy.js").ApiCall} ApiCall */

/** @param {ApiCall} call */
function curlCommand({ method = "GET", path, query, body }) {
  const words = ["curl", '-H "Authorization: Bearer $POINTSMAN_TOKEN"'];
  const hasBody = body !== undefined;
  if (method !== (hasBody ? "POST" : "GET")) words.push("-X", method);
  words.push(shellQuote(location.origin + addQuery(path, query)));
  if (hasBody) words.push("--json", shellQuote(JSON.stringify(body)));
  return words.join(" ");
}

/** @param {{call: ApiCall, cli?: string | null, onCopied: () => void}} props */
export function CopyMenuItems({ call, cli, onCopied }) {
  /** @param {string} text @param {string} label */
  const copyAndClose = (text, label) => {
    onCopied();
    copyToClipboard(text, label);
  };
  const curlCommandText = curlCommand(call);
  return html`<div class="menu">
    <button type="button" onClick=${() => copyAndClose(curlCommandText, "curl command")}><b>curl</b><code>${curlCommandText}</code></button>
    ${cli && html`<button type="button" onClick=${() => copyAndClose(cli, "CLI command")}><b>CLI</b><code>${cli}</code></button>`}
    <button type="button" onClick=${() => copyAndClose(location.href, "Link")}><b>Link</b><code>${location.hash}</code></button>
  </div>`;
}
