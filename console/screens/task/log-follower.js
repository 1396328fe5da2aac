// Follows the log of a task: stored lines, then new lines until the task has ended.

import { readProblem, encodeSegment, sendRequest } from "../../data/api.js";
import { readSseFrames } from "../../data/sse.js";
import { useEffect, useRef, useSignal } from "../../parts/ui.js";
import { LogBuffer } from "./log-buffer.js";

/** `version` changes with the buffer.
 * @typedef {{version: number, phase: "reading" | "ended" | "waiting", error: unknown}} LogState */

const MAX_RETRY_DELAY_MS = 10_000;

/** Follows the log of a task. When the task is run again, follows it again, even if the new attempt has already ended.
 * @param {string} id @param {boolean} isEnded whether the task has ended @param {number} attempt its attempts so far */
export function useTaskLog(id, isEnded, attempt) {
  const buffer = useRef(new LogBuffer());
  const state = useSignal(/** @type {LogState} */ ({ version: 0, phase: "reading", error: null }));
  /** The id of the last line read. */
  const lastLineId = useRef(/** @type {string | null} */ (null));
  /** The attempt whose log was read to the end. */
  const readAttempt = useRef(/** @type {number | null} */ (null));
  useEffect(() => {
    buffer.current = new LogBuffer();
    lastLineId.current = null;
    readAttempt.current = null;
    state.value = { version: state.value.version + 1, phase: "reading", error: null };
  }, [id]);
  useEffect(() => {
    if (isEnded && readAttempt.current === attempt) return undefined;
    const readAbort = new AbortController();
    followLog(id, readAbort.signal, { buffer: () => buffer.current, lastLineId, onState: (change) => {
      if (change.phase === "ended") readAttempt.current = attempt;
      state.value = { ...state.value, ...change, version: state.value.version + 1 };
    } });
    return () => readAbort.abort();
  }, [id, isEnded, attempt]);
  return { ...state.value, buffer: buffer.current };
}

/** @typedef {{buffer: () => LogBuffer, lastLineId: {current: string | null}, onState: (change: Partial<LogState>) => void}}
 * LogSink */

/** Reads to the end, and reconnects when the connection breaks.
 * @param {string} id @param {AbortSignal} signal @param {LogSink} sink */
async function followLog(id, signal, sink) {
  for (let tries = 0; !signal.aborted; tries += 1) {
    try {
      if (await readLogConnection(id, signal, sink)) {
        sink.onState({ phase: "ended", error: null });
        return;
      }
      tries = 0;
    } catch (error) {
      if (signal.aborted) return;
      sink.onState({ phase: "waiting", error });
      if (!(/** @type {{isTransient?: boolean}} */ (error).isTransient ?? true)) return;
    }
    await new Promise((resolve) => setTimeout(resolve, Math.min(MAX_RETRY_DELAY_MS, 300 * 2 ** tries)));
  }
}

/** Reads one connection. Resolves to whether the log has ended.
 * @param {string} id @param {AbortSignal} signal @param {LogSink} sink */
async function readLogConnection(id, signal, { buffer, lastLineId, onState }) {
  /** @type {Record<string, string>} */
  const headers = lastLineId.current === null ? {} : { "last-event-id": lastLineId.current };
  const response = await sendRequest("GET", `/api/v1/tasks/${encodeSegment(id)}/logs?follow=true`, { headers: { ...headers, accept: "text/event-stream" }, signal });
  if (!response.ok) throw await readProblem(response);
  onState({ phase: "reading", error: null });
  let drawTimer = 0;
  const draw = () => {
    drawTimer = 0;
    if (!signal.aborted) onState({});
  };
  for await (const frames of readSseFrames(response)) {
    if (signal.aborted) return false;
    const lines = frames.filter(({ event, data }) => event === "log" && data);
    buffer().push(lines.map(({ data }) => JSON.parse(data)));
    lastLineId.current = lines.at(-1)?.id ?? lastLineId.current;
    // At most one update per animation frame.
    if (lines.length && !drawTimer) drawTimer = document.hidden ? Number(setTimeout(draw, 200)) : requestAnimationFrame(draw);
    if (frames.some(({ event }) => event === "end")) return true;
  }
  return false;
}
