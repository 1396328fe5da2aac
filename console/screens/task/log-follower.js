// Follows a task's log: all that is there, then lines as they come, until the task has ended.

import { readProblem, encodeSegment, sendRequest } from "../../data/api.js";
import { readFrames } from "../../data/sse.js";
import { useEffect, useRef, useSignal } from "../../parts/ui.js";
import { LogBuffer } from "./log-buffer.js";

/** `version` changes with the book.
 * @typedef {{version: number, phase: "reading" | "ended" | "waiting", error: unknown}} LogState */

const MAX_RETRY_DELAY_MS = 10_000;

/** @param {string} id @param {boolean} over whether the task has ended @param {number} turn its attempts so far: one that
 *   is run again is followed on, also if that was over before anybody looked */
export function useTaskLog(id, over, turn) {
  const book = useRef(new LogBuffer());
  const state = useSignal(/** @type {LogState} */ ({ version: 0, phase: "reading", error: null }));
  /** The number of the last line that was read. */
  const last = useRef(/** @type {string | null} */ (null));
  /** The attempt that the log has come to its end for. */
  const read = useRef(/** @type {number | null} */ (null));
  useEffect(() => {
    book.current = new LogBuffer();
    last.current = null;
    read.current = null;
    state.value = { version: state.value.version + 1, phase: "reading", error: null };
  }, [id]);
  useEffect(() => {
    if (over && read.current === turn) return undefined;
    const reading = new AbortController();
    followLog(id, reading.signal, { book: () => book.current, last, show: (change) => {
      if (change.phase === "ended") read.current = turn;
      state.value = { ...state.value, ...change, version: state.value.version + 1 };
    } });
    return () => reading.abort();
  }, [id, over, turn]);
  return { ...state.value, book: book.current };
}

/** @typedef {{book: () => LogBuffer, last: {current: string | null}, show: (change: Partial<LogState>) => void}} LogSink */

/** Reads until the end, and comes back when the connection breaks.
 * @param {string} id @param {AbortSignal} signal @param {LogSink} place */
async function followLog(id, signal, place) {
  for (let tries = 0; !signal.aborted; tries += 1) {
    try {
      if (await readConnection(id, signal, place)) {
        place.show({ phase: "ended", error: null });
        return;
      }
      tries = 0;
    } catch (error) {
      if (signal.aborted) return;
      place.show({ phase: "waiting", error });
      if (!(/** @type {{passing?: boolean}} */ (error).passing ?? true)) return;
    }
    await new Promise((resolve) => setTimeout(resolve, Math.min(MAX_RETRY_DELAY_MS, 300 * 2 ** tries)));
  }
}

/** Reads one connection. Answers whether the log has come to its end.
 * @param {string} id @param {AbortSignal} signal @param {LogSink} place */
async function readConnection(id, signal, { book, last, show }) {
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
    book().push(lines.map(({ data }) => JSON.parse(data)));
    last.current = lines.at(-1)?.id ?? last.current;
    // One drawing an animation frame, however fast they come.
    if (lines.length && !drawing) drawing = document.hidden ? Number(setTimeout(draw, 200)) : requestAnimationFrame(draw);
    if (list.some(({ event }) => event === "end")) return true;
  }
  return false;
}
