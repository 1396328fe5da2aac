// The newest events: read backwards once, then followed. The number of rows is bounded.

import { api } from "../../data/api.js";
import { subscribe } from "../../data/stream.js";
import { RingBuffer } from "../../data/ring-buffer.js";
import { useEffect, useRef, useSignal } from "../../parts/ui.js";
import { newEventRow, newGapRow, newTaskChangeRow } from "./rows.js";

/** @typedef {import("../../data/stream-filter.js").StreamFilter} StreamFilter */
/** @typedef {import("./rows.js").StreamRow} StreamRow */

/** Maximum rows, and events read at first. */
const MAX_ROWS = 5000;
export const INITIAL_EVENT_COUNT = 200;

const GAP_TEXTS = {
  torn: "Torn stream: events here expired before this page could read them.",
  behind: "This page could not keep up, and events are missing here. Reload to see the newest without a gap.",
};

/** @typedef {{rows: StreamRow[], error: unknown, loading: boolean, torn: boolean, searching: boolean, buffered: number, dropped: number}} TailState */

/** @param {{filter: StreamFilter, olderEventCount: number, paused: boolean}} options */
export function useStreamTail({ filter, olderEventCount, paused }) {
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
    let newestId = 0;
    let hasRead = false;
    let torn = false;
    let searching = false;
    /** @type {unknown} */
    let error = null;
    const updateState = () => {
      state.value = { rows: ring.items, error, loading: !hasRead && !error, torn, searching, buffered: buffered.items.length + buffered.dropped, dropped: ring.dropped };
    };
    /** @param {StreamRow[]} rows */
    const addRows = (rows) => {
      if (rows.length === 0) return;
      (isPaused.current || !hasRead ? buffered : ring).push(rows);
      updateState();
    };
    showBuffered.current = () => {
      if (buffered.dropped) ring.push([newGapRow(`${buffered.dropped} more arrived while the stream was paused and are not shown here.`)]);
      ring.push(buffered.items);
      buffered.clear();
      updateState();
    };
    const { types, key, path, tenant } = filter;
    const query = { limit: -olderEventCount, return: types?.join(","), key, path, tenant };
    /** Reads older events; `searchAll` lets the server search the whole journal.
     * @param {boolean} searchAll */
    const readHistory = async (searchAll) => {
      const page = await api.get("/api/v1/events", { query: { ...query, timeout: searchAll ? "30s" : "" }, signal: readAbort.signal, exactNumbers: true });
      // Without a timeout the server searches only briefly.
      searching = !searchAll && page.TYPE === "Empty" && page.lastEventId < page.eventId;
      const found = (page.eventSnapshots ?? []).reverse().map(newEventRow);
      // The stream may deliver these events again.
      newestId = Math.max(newestId, found.at(-1)?.eventId ?? 0);
      const foundIds = new Set(found.map((/** @type {StreamRow} */ row) => row.id));
      const newerRows = [...ring.items, ...(hasRead ? [] : buffered.items)].filter((row) => !foundIds.has(row.id));
      if (!hasRead) buffered.clear();
      ring.clear();
      ring.push([...found, ...newerRows]);
      hasRead = true;
      updateState();
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
        updateState();
      });
    };
    const unsubscribe = subscribe(filter, {
      onEvents: (events) => {
        const newEvents = events.filter((event) => event.eventId > newestId);
        newestId = newEvents.at(-1)?.eventId ?? newestId;
        addRows(newEvents.map(newEventRow));
      },
      onTaskChanges: (list) => addRows(list.map(newTaskChangeRow)),
      onGap: (gap) => {
        if (gap === "reconnected") return;
        torn = true;
        addRows([newGapRow(GAP_TEXTS[gap])]);
      },
      onOpen: start,
    });
    return () => {
      unsubscribe();
      clearTimeout(streamTimeout);
      readAbort.abort();
    };
  }, [JSON.stringify(filter), olderEventCount, reloadCount.value]);

  useEffect(() => {
    if (!paused) showBuffered.current();
  }, [paused]);

  return { ...state.value, reload: () => { reloadCount.value += 1; } };
}
