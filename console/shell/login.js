// The login page.

import { Problem, errorText } from "../data/problem.js";
import { signOutReason, signIn } from "../data/session.js";
import { Button } from "../parts/button.js";
import { html, useState } from "../parts/ui.js";
import { fetchTokenDetails } from "./token-check.js";

export function Login() {
  const [text, setText] = useState("");
  const [persist, setPersist] = useState(false);
  const [error, setError] = useState("");
  const [isSubmitting, setSubmitting] = useState(false);
  /** @param {Event} event */
  const submit = async (event) => {
    event.preventDefault();
    const enteredToken = text.trim();
    if (!enteredToken || isSubmitting) return;
    setSubmitting(true);
    setError("");
    try {
      signIn(enteredToken, persist, await fetchTokenDetails(enteredToken));
    } catch (problem) {
      const isUnknownToken = problem instanceof Problem && problem.status === 401;
      setError(isUnknownToken ? "Unknown token." : errorText(problem));
      setSubmitting(false);
    }
  };
  const message = error || signOutReason.value;
  return html`<main class="login">
    <form onSubmit=${submit}>
      <h1><span class="brand-mark" aria-hidden="true"></span>Pointsman</h1>
      <input type="text" name="username" autocomplete="username" value="pointsman" hidden readonly />
      <div class="field">
        <label for="token">Token</label>
        <input id="token" type="password" autocomplete="current-password" autofocus value=${text} aria-describedby="token-hint"
          aria-invalid=${error !== ""} onInput=${(/** @type {Event} */ event) => setText(/** @type {HTMLInputElement} */ (event.target).value)} />
        <span class="hint" id="token-hint">On its first start <code>pointsman serve</code> prints one; <code>pointsman token new</code> creates more.</span>
      </div>
      <label class="check"><input type="checkbox" checked=${persist} onChange=${(/** @type {Event} */ event) => setPersist(/** @type {HTMLInputElement} */ (event.target).checked)} />
        Stay signed in on this computer</label>
      ${message && html`<p class="notice bad" role="alert">${message}</p>`}
      <${Button} type="submit" kind="primary" disabled=${isSubmitting || text.trim() === ""}>Sign in<//>
    </form>
    <p class="faint"><a href="/docs">API reference</a>, <a href="/openapi.json">OpenAPI description</a></p>
  </main>`;
}
