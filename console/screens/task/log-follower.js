// Follows the log of a task: stored lines, then new lines until the task has ended.

import { readProblem, encodeSegment, sendRequest } from "../../data/api.js";
import { readFrames } from "../../data/sse.js";
import { useEffect, useRef, useSignal } from "../../parts/ui.js";
import { LogBuffer } from "./log-buffer.js";

/** `version` changes with the buffer.
 * @typedef {{version: number, phase: "reading" | "ended" | "waiting", error: unknown}} LogState */

const MAX_RETRY_DELAY_MS = 10_000;

/** @param {string} id @param {boolean} isEnded whether the task has ended @param {number} attempt its attempts so
 * far: one that
 *   is run again is followed on, also if that was over before anybody looked */
export function useTaskLog(id, isEnded, attempt) {
  const buffer = useRef(new LogBuffer());
  const state = useSignal(/** @type {LogState} */ ({ version: 0, phase: "reading", error: null }));
  /** The id of the last line read. */
  const last = useRef(/** @type {string | null} */ (null));
  /** The attempt whose log was read to the end. */
  const read = useRef(/** @type {number | null} */ (null));
  useEffect(() => {
    buffer.current = new LogBuffer();
    last.current = null;
    read.current = null;
    state.value = { version: state.value.version + 1, phase: "reading", error: null };
  }, [id]);
  useEffect(() => {
    if (isEnded && read.current === attempt) return undefined;
    const readAbort = new AbortController();
    followLog(id, readAbort.signal, { buffer: () => buffer.current, last, show: (change) => {
      if (change.phase === "ended") read.current = attempt;
      state.value = { ...state.value, ...change, version: state.value.version + 1 };
    } });
    return () => readAbort.abort();
  }, [id, isEnded, attempt]);
  return { ...state.value, buffer: buffer.current };
}

/** @typedef {{buffer: () => LogBuffer, last: {current: string | null}, show: (change: Partial<LogState>) => void}}
 * LogSink */

/** Reads to the end, and reconnects when the connection breaks.
 * @param {string} id @param {AbortSignal} signal @param {LogSink} sink */
async function followLog(id, signal, sink) {
  for (let tries = 0; !signal.aborted; tries += 1) {
    try {
      if (await readConnection(id, signal, sink)) {
        sink.show({ phase: "ended", error: null });
        return;
      }
      tries = 0;
    } catch (error) {
      if (signal.aborted) return;
      sink.show({ phase: "waiting", error });
      if (!(/** @type {{isTransient?: boolean}} */ (error).isTransient ?? true)) return;
    }
    await new Promise((resolve) => setTimeout(resolve, Math.min(MAX_RETRY_DELAY_MS, 300 * 2 ** tries)));
  }
}

/** Reads one connection. Resolves to whether the log has ended.
 * @param {string} id @param {AbortSignal} signal @param {LogSink} place */
async function readConnection(id, signal, { buffer, last, show }) {
  /** @type {Record<string, string>} */
  const after = last.current === null ? {} : { "last-event-id": last.current };
  const response = await sendRequest("GET", `/api/v1/tasks/${encodeSegment(id)}/logs?follow=true`, { headers: { ...after, accept: "text/event-stream" }, signal });
  if (!response.ok) throw await readProblem(response);
  show({ phase: "reading", error: null });
  let drawing = 0;
  const draw = () => {
    drawing = 0;
    if (!signal.aborted) show({});
  };
  for await (const list of readFrames(response)) {
    if (signal.aborted) return false;
    const lines = list.filter(({ event, data }) => event === "log" && data);
    buffer().push(lines.map(({ data }) => JSON.parse(data)));
    last.current = lines.at(-1)?.id ?? last.current;
    // At most one update per animation frame.
    if (lines.length && !drawing) drawing = document.hidden ? Number(setTimeout(draw, 200)) : requestAnimationFrame(draw);
    if (list.some(({ event }) => event === "end")) return true;
  }
  return false;
}
