// Reads a snapshot and keeps it current with the stream.
//
//   subscribe ─▶ read the snapshot, buffering batches meanwhile ─▶ apply newer events ─▶ apply each batch
//                  ▲                                                                                │
//                  └─────────────── torn, behind, back after a break: read anew ◀──────────────────┘

import { useEffect, useRef } from "../vendor/preact-hooks.js";
import { useSignal } from "../vendor/signals.js";
import { subscribe } from "./stream.js";

/** @typedef {import("./filter.js").StreamFilter} StreamFilter */
/** @typedef {import("./filter.js").JournalEvent} JournalEvent */
/** @typedef {import("./filter.js").TaskChange} TaskChange */
/** @typedef {{events: JournalEvent[], tasks: TaskChange[]}} StreamBatch */

/** `error` and `data` are both set while a refresh fails and the previous data stays visible.
 * @template T
 * @typedef {{data: T | null, error: unknown, loading: boolean, reload: () => void}} LiveData */

/** Says how data is read and kept current.
 * @template T
 * @typedef {object} LiveQuery
 * @property {(signal: AbortSignal) => Promise<T>} read reads the snapshot; its `eventId`, if any, is the newest event
 * that it contains
 * @property {StreamFilter} [filter] what to subscribe to; without it there are no live updates
 * @property {(data: T, batch: StreamBatch) => T | null} [apply] the data after the batch; null if it has to be read
 * again. Without it every batch causes a read
 * @property {number} [minInterval] minimum milliseconds between two reads; 1000 by default
 * @property {number} [pollInterval] reads again after this many milliseconds in any case: a node does not stream task
 * changes of its peers
 */

/** Reads and follows a query. Starts again when one of `deps` changes.
 * @template T
 * @param {LiveQuery<T>} query @param {unknown[]} deps
 * @returns {LiveData<T>} */
export function useLiveData(query, deps) {
  const state = useSignal(/** @type {LiveData<T>} */ ({ data: null, error: null, loading: true, reload: () => {} }));
  const current = useRef(query);
  current.current = query;
  useEffect(() => {
    const followed = followQuery(() => current.current, (next) => {
      state.value = next;
    });
    return followed.stop;
  }, deps);
  return state.value;
}

/** How long to wait for the stream before data is read without it. */
const STREAM_WAIT_MS = 1000;

/** The same outside of a component.
 * @template T
 * @param {() => LiveQuery<T>} getQuery @param {(state: LiveData<T>) => void} show */
export function followQuery(getQuery, show) {
  /** @type {LiveData<T>} */
  let state = { data: null, error: null, loading: true, reload: () => scheduleRead(0) };
  /** Batch that arrived while a snapshot was being read. @type {StreamBatch | null} */
  let buffered = null;
  /** @type {AbortController | null} */
  let readAbort = null;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;
  let readAt = 0;
  let due = Infinity;
  let tries = 0;
  /** The newest event of the snapshot. The stream may deliver it again. */
  let snapshotEventId = 0;

  /** @param {Partial<LiveData<T>>} change */
  const set = (change) => {
    state = { ...state, ...change };
    show(state);
  };

  /** @param {number} wait */
  function scheduleRead(wait) {
    const at = Math.max(Date.now() + wait, wait === 0 ? 0 : readAt + (getQuery().minInterval ?? 1000));
    if (at >= due) return;
    due = at;
    clearTimeout(timer);
    timer = setTimeout(read, at - Date.now());
  }

  async function read() {
    due = Infinity;
    readAbort?.abort();
    const thisRead = new AbortController();
    readAbort = thisRead;
    buffered = { events: [], tasks: [] };
    readAt = Date.now();
    if (!state.loading) set({ loading: state.data === null });
    try {
      const data = await getQuery().read(thisRead.signal);
      if (thisRead.signal.aborted) return;
      const arrived = /** @type {StreamBatch} */ (buffered);
      buffered = null;
      snapshotEventId = Number(/** @type {{eventId?: number} | null} */ (data)?.eventId ?? 0);
      tries = 0;
      set({ data, error: null, loading: false });
      applyBatch(arrived);
    } catch (error) {
      if (thisRead.signal.aborted) return;
      buffered = null;
      tries += 1;
      set({ error, loading: false });
      // A refused request is not repeated; a transient failure is.
      if (/** @type {{isTransient?: boolean}} */ (error).isTransient) scheduleRead(Math.min(15_000, 500 * 2 ** tries));
    }
    const { pollInterval } = getQuery();
    if (pollInterval) scheduleRead(pollInterval);
  }

  /** @param {StreamBatch} news */
  function applyBatch({ events: all, tasks }) {
    const events = all.filter((event) => event.eventId > snapshotEventId);
    if (events.length + tasks.length === 0) return;
    const { apply } = getQuery();
    if (buffered) {
      buffered.events.push(...events);
      buffered.tasks.push(...tasks);
    } else if (apply && state.data !== null) {
      const next = apply(state.data, { events, tasks });
      if (next === null) scheduleRead(1);
      else if (next !== state.data) set({ data: next });
    } else {
      scheduleRead(1);
    }
  }

  // Without the stream the data is read anyway, and again when the stream opens.
  const streamTimeout = setTimeout(read, STREAM_WAIT_MS);
  const begin = () => {
    clearTimeout(streamTimeout);
    if (readAt === 0) read();
    else scheduleRead(1);
  };
  const { filter } = getQuery();
  const unsubscribe = filter && subscribe(filter, {
    events: (events) => applyBatch({ events, tasks: [] }),
    tasks: (tasks) => applyBatch({ events: [], tasks }),
    gap: (reason) => {
      if (reason !== "behind") scheduleRead(1);
    },
    open: begin,
  });
  show(state);
  if (!filter) begin();

  return {
    stop: () => {
      unsubscribe?.();
      readAbort?.abort();
      clearTimeout(timer);
      clearTimeout(streamTimeout);
    },
  };
}
