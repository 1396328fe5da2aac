// The way in: a token, and what it may do.

import { Problem, errorText } from "../data/problem.js";
import { signOutReason, signIn } from "../data/session.js";
import { Button } from "../parts/button.js";
import { html, useState } from "../parts/ui.js";
import { fetchTokenOwner } from "./token-check.js";

export function Login() {
  const [text, setText] = useState("");
  const [stay, setStay] = useState(false);
  const [error, setError] = useState("");
  const [busy, setBusy] = useState(false);
  /** @param {Event} event */
  const enter = async (event) => {
    event.preventDefault();
    const given = text.trim();
    if (!given || busy) return;
    setBusy(true);
    setError("");
    try {
      signIn(given, stay, await fetchTokenOwner(given));
    } catch (problem) {
      const unknown = problem instanceof Problem && problem.status === 401;
      setError(unknown ? "Unknown token." : errorText(problem));
      setBusy(false);
    }
  };
  const told = error || signOutReason.value;
  return html`<main class="login">
    <form onSubmit=${enter}>
      <h1><span class="brand-mark" aria-hidden="true"></span>Pointsman</h1>
      <input type="text" name="username" autocomplete="username" value="pointsman" hidden readonly />
      <div class="field">
        <label for="token">Token</label>
        <input id="token" type="password" autocomplete="current-password" autofocus value=${text} aria-describedby="token-hint"
          aria-invalid=${error !== ""} onInput=${(/** @type {Event} */ event) => setText(/** @type {HTMLInputElement} */ (event.target).value)} />
        <span class="hint" id="token-hint">On its first start <code>pointsman serve</code> prints one; <code>pointsman token new</code> creates more.</span>
      </div>
      <label class="check"><input type="checkbox" checked=${stay} onChange=${(/** @type {Event} */ event) => setStay(/** @type {HTMLInputElement} */ (event.target).checked)} />
        Stay signed in on this computer</label>
      ${told && html`<p class="notice bad" role="alert">${told}</p>`}
      <${Button} type="submit" kind="primary" disabled=${busy || text.trim() === ""}>Sign in<//>
    </form>
    <p class="faint"><a href="/docs">API reference</a>, <a href="/openapi.json">OpenAPI description</a></p>
  </main>`;
}
