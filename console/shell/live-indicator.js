// Shows whether the page is connected to the stream.

import { streamConnectionState, framesPerSecond, reconnectNow } from "../data/stream.js";
import { formatCompactNumber } from "../data/numbers.js";
import { now } from "../data/time.js";
import { ToneIcon } from "../parts/badge.js";
import { html } from "../parts/ui.js";

export function LiveIndicator() {
  const { phase, reason, tries, retryAt } = streamConnectionState.value;
  if (phase === "off") {
    return html`<span class="live-indicator" title="This screen has no live updates"><${ToneIcon} tone="off" /><span>Static</span></span>`;
  }
  if (phase === "refused") {
    return html`<span class="live-indicator" role="status" title=${reason}><${ToneIcon} tone="warn" /><span>Not live</span></span>`;
  }
  if (phase === "open") {
    const rate = framesPerSecond.value;
    return html`<span class="live-indicator open" title="Changes appear as they happen">
      <${ToneIcon} tone="good" /><span role="status">Live</span>${rate >= 0.5 && html`<span class="faint number">${formatCompactNumber(Math.round(rate))}/s</span>`}
    </span>`;
  }
  if (phase === "connecting" && tries === 0) {
    return html`<span class="live-indicator" role="status"><${ToneIcon} tone="idle" /><span>Connecting</span></span>`;
  }
  const seconds = Math.max(0, Math.ceil((retryAt - now.value) / 1000));
  return html`<button type="button" class="live-indicator disconnected" onClick=${reconnectNow} title=${`${reason} Click to reconnect now.`}>
    <${ToneIcon} tone="warn" /><span role="status">${phase === "connecting" ? "Reconnecting" : "Not live"}</span>
    ${phase === "waiting" && seconds > 0 && html`<span class="faint number">${seconds} s</span>`}
  </button>`;
}
