// Reads server-sent events from a response. `EventSource` cannot send a token.

/** @typedef {{id: string | null, event: string, data: string}} SseFrame */

/** Yields frames as they arrive. Ends with the response.
 * @param {Response} response
 * @returns {AsyncGenerator<SseFrame[], void>} the frames that one chunk completes */
export async function* readSseFrames(response) {
  if (!response.body) return;
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let incomplete = "";
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      const text = incomplete + value;
      const end = text.lastIndexOf("\n\n");
      if (end < 0) {
        incomplete = text;
        continue;
      }
      incomplete = text.slice(end + 2);
      yield text.slice(0, end).split("\n\n").map(parseSseFrame);
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}

/** @param {string} text
 * @returns {SseFrame} */
export function parseSseFrame(text) {
  let id = null;
  let event = "message";
  /** @type {string[]} */
  const data = [];
  for (const line of text.split("\n")) {
    const colon = line.indexOf(":");
    if (colon <= 0) continue;
    const value = line.slice(colon + (line[colon + 1] === " " ? 2 : 1));
    const field = line.slice(0, colon);
    if (field === "id") id = value;
    else if (field === "event") event = value;
    else if (field === "data") data.push(value);
  }
  return { id, event, data: data.join("\n") };
}
