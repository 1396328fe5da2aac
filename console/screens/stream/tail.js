// The newest events: read backwards once, then followed. The number of rows is bounded.

import { api } from "../../data/api.js";
import { subscribe } from "../../data/stream.js";
import { RingBuffer } from "../../data/ring-buffer.js";
import { useEffect, useRef, useSignal } from "../../parts/ui.js";
import { eventRow, gapRow, taskRow } from "./rows.js";

/** @typedef {import("../../data/filter.js").StreamFilter} StreamFilter */
/** @typedef {import("./rows.js").StreamRow} StreamRow */

/** Rows kept, and events read at first. */
const MAX_ROWS = 5000;
export const FIRST_ROWS = 200;

const GAP_TEXTS = {
  torn: "Torn stream: events here expired before this page could read them.",
  behind: "This page could not keep up, and events are left out here. Reload to see the newest without a gap.",
};

/** @typedef {{rows: StreamRow[], error: unknown, loading: boolean, torn: boolean, searching: boolean, buffered: number, dropped: number}} TailState */

/** @param {{filter: StreamFilter, history: number, paused: boolean}} wish */
export function useStreamTail({ filter, history, paused }) {
  const state = useSignal(/** @type {TailState} */ ({ rows: [], error: null, loading: true, torn: false, searching: false, buffered: 0, dropped: 0 }));
  const isPaused = useRef(paused);
  isPaused.current = paused;
  const reloadCount = useSignal(0);
  const showBuffered = useRef(() => {});

  useEffect(() => {
    /** @type {RingBuffer<StreamRow>} */
    const ring = new RingBuffer(MAX_ROWS);
    /** Rows that arrived while the stream was paused. @type {RingBuffer<StreamRow>} */
    const buffered = new RingBuffer(MAX_ROWS);
    const readAbort = new AbortController();
    let newest = 0;
    let read = false;
    let torn = false;
    let searching = false;
    /** @type {unknown} */
    let error = null;
    const show = () => {
      state.value = { rows: ring.items, error, loading: !read && !error, torn, searching, buffered: buffered.items.length + buffered.dropped, dropped: ring.dropped };
    };
    /** @param {StreamRow[]} rows */
    const add = (rows) => {
      if (rows.length === 0) return;
      (isPaused.current || !read ? buffered : ring).push(rows);
      show();
    };
    showBuffered.current = () => {
      if (buffered.dropped) ring.push([gapRow(`${buffered.dropped} more arrived while the stream was paused and are left out here.`)]);
      ring.push(buffered.items);
      buffered.clear();
      show();
    };
    const { types, key, path, tenant } = filter;
    const query = { limit: -history, return: types?.join(","), key, path, tenant };
    /** Reads older events; `searchAll` lets the server search the whole journal.
     * @param {boolean} searchAll */
    const readHistory = async (searchAll) => {
      const seq = await api.get("/api/v1/events", { query: { ...query, timeout: searchAll ? "30s" : "" }, signal: readAbort.signal, exact: true });
      // Without a timeout the server searches only briefly.
      searching = !searchAll && seq.TYPE === "Empty" && seq.lastEventId < seq.eventId;
      const found = (seq.eventSnapshots ?? []).reverse().map(eventRow);
      // The stream may deliver these events again.
      newest = Math.max(newest, found.at(-1)?.eventId ?? 0);
      const foundIds = new Set(found.map((/** @type {StreamRow} */ row) => row.id));
      const since = [...ring.items, ...(read ? [] : buffered.items)].filter((row) => !foundIds.has(row.id));
      if (!read) buffered.clear();
      ring.clear();
      ring.push([...found, ...since]);
      read = true;
      show();
      if (searching) await readHistory(true);
    };
    let hasStarted = false;
    // Without the stream the journal is read anyway.
    const streamTimeout = setTimeout(() => start(), 1000);
    const start = () => {
      clearTimeout(streamTimeout);
      // Events may be missing between that read and the stream.
      if (hasStarted && !torn) reloadCount.value += 1;
      if (hasStarted) return;
      hasStarted = true;
      readHistory(false).catch((problem) => {
        if (readAbort.signal.aborted) return;
        error = problem;
        show();
      });
    };
    const unsubscribe = subscribe(filter, {
      events: (events) => {
        const newEvents = events.filter((event) => event.eventId > newest);
        newest = newEvents.at(-1)?.eventId ?? newest;
        add(newEvents.map(eventRow));
      },
      tasks: (list) => add(list.map(taskRow)),
      gap: (gap) => {
        if (gap === "back") return;
        torn = true;
        add([gapRow(GAP_TEXTS[gap])]);
      },
      open: start,
    });
    return () => {
      unsubscribe();
      clearTimeout(streamTimeout);
      readAbort.abort();
    };
  }, [JSON.stringify(filter), history, reloadCount.value]);

  useEffect(() => {
    if (!paused) showBuffered.current();
  }, [paused]);

  return { ...state.value, reload: () => { reloadCount.value += 1; } };
}
