// Whether the page hears what happens, said plainly.

import { connection, pulse, reconnect } from "../data/live.js";
import { brief } from "../data/numbers.js";
import { now } from "../data/time.js";
import { Shape } from "../parts/badge.js";
import { html } from "../parts/ui.js";

export function Live() {
  const { phase, why, tries, retryAt } = connection.value;
  if (phase === "off") {
    return html`<span class="live" title="This screen has no live updates"><${Shape} tone="off" /><span>Static</span></span>`;
  }
  if (phase === "refused") {
    return html`<span class="live" role="status" title=${why}><${Shape} tone="warn" /><span>Not live</span></span>`;
  }
  if (phase === "open") {
    const rate = pulse.value;
    return html`<span class="live open" title="Changes appear as they happen">
      <${Shape} tone="good" /><span role="status">Live</span>${rate >= 0.5 && html`<span class="faint number">${brief(Math.round(rate))}/s</span>`}
    </span>`;
  }
  if (phase === "connecting" && tries === 0) {
    return html`<span class="live" role="status"><${Shape} tone="idle" /><span>Connecting</span></span>`;
  }
  const seconds = Math.max(0, Math.ceil((retryAt - now.value) / 1000));
  return html`<button type="button" class="live lost" onClick=${reconnect} title=${`${why} Click to reconnect now.`}>
    <${Shape} tone="warn" /><span role="status">${phase === "connecting" ? "Reconnecting" : "Not live"}</span>
    ${phase === "waiting" && seconds > 0 && html`<span class="faint number">${seconds} s</span>`}
  </button>`;
}
