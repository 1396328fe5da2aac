// Reads a snapshot and keeps it current with the stream.
//
//   subscribe ─▶ read the snapshot, buffering batches meanwhile ─▶ apply newer events ─▶ apply each batch
//                  ▲                                                                                │
//                  └──────────────────── torn, behind, reconnected: read again ◀────────────────────┘

import { useEffect, useRef } from "../vendor/preact-hooks.js";
import { useSignal } from "../vendor/signals.js";
import { subscribe } from "./stream.js";

/** @typedef {import("./stream-filter.js").StreamFilter} StreamFilter */
/** @typedef {import("./api-types.js").JournalEvent} JournalEvent */
/** @typedef {import("./api-types.js").TaskChange} TaskChange */
/** @typedef {{events: JournalEvent[], tasks: TaskChange[]}} StreamBatch */

/** `error` and `data` are both set while a refresh fails and the previous data stays visible.
 * @template T
 * @typedef {{data: T | null, error: unknown, loading: boolean, reload: () => void}} LiveData */

/** Describes how data is read and kept current.
 * @template T
 * @typedef {object} LiveQuery
 * @property {(signal: AbortSignal) => Promise<T>} read reads the snapshot; its `eventId`, if any, is the newest event
 * that it contains
 * @property {StreamFilter} [filter] the events to subscribe to; without it there are no live updates
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
  const latestQuery = useRef(query);
  latestQuery.current = query;
  useEffect(() => {
    const follower = followQuery(() => latestQuery.current, (next) => {
      state.value = next;
    });
    return follower.stop;
  }, deps);
  return state.value;
}

/** How long to wait for the stream before data is read without it. */
const MAX_STREAM_WAIT_MS = 1000;

/** Reads and follows a query outside of a component.
 * @template T
 * @param {() => LiveQuery<T>} getQuery @param {(state: LiveData<T>) => void} onState */
export function followQuery(getQuery, onState) {
  /** @type {LiveData<T>} */
  let state = { data: null, error: null, loading: true, reload: () => scheduleRead(0) };
  /** Batch that arrived while a snapshot was being read. @type {StreamBatch | null} */
  let buffered = null;
  /** @type {AbortController | null} */
  let readAbort = null;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let readTimer;
  let lastReadAt = 0;
  let nextReadAt = Infinity;
  let failedReads = 0;
  /** The newest event of the snapshot. The stream may deliver it again. */
  let snapshotEventId = 0;

  /** @param {Partial<LiveData<T>>} change */
  const updateState = (change) => {
    state = { ...state, ...change };
    onState(state);
  };

  /** @param {number} delayMs */
  function scheduleRead(delayMs) {
    const at = Math.max(Date.now() + delayMs, delayMs === 0 ? 0 : lastReadAt + (getQuery().minInterval ?? 1000));
    if (at >= nextReadAt) return;
    nextReadAt = at;
    clearTimeout(readTimer);
    readTimer = setTimeout(read, at - Date.now());
  }

  async function read() {
    nextReadAt = Infinity;
    readAbort?.abort();
    const thisRead = new AbortController();
    readAbort = thisRead;
    buffered = { events: [], tasks: [] };
    lastReadAt = Date.now();
    if (!state.loading) updateState({ loading: state.data === null });
    try {
      const data = await getQuery().read(thisRead.signal);
      if (thisRead.signal.aborted) return;
      const arrived = /** @type {StreamBatch} */ (buffered);
      buffered = null;
      snapshotEventId = Number(/** @type {{eventId?: number} | null} */ (data)?.eventId ?? 0);
      failedReads = 0;
      updateState({ data, error: null, loading: false });
      applyBatch(arrived);
    } catch (error) {
      if (thisRead.signal.aborted) return;
      buffered = null;
      failedReads += 1;
      updateState({ error, loading: false });
      // A refused request is not repeated; a transient failure is.
      if (/** @type {{isTransient?: boolean}} */ (error).isTransient) scheduleRead(Math.min(15_000, 500 * 2 ** failedReads));
    }
    const { pollInterval } = getQuery();
    if (pollInterval) scheduleRead(pollInterval);
  }

  /** @param {StreamBatch} batch */
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
      else if (next !== state.data) updateState({ data: next });
    } else {
      scheduleRead(1);
    }
  }

  // Without the stream the data is read anyway, and again when the stream opens.
  const streamTimeout = setTimeout(read, MAX_STREAM_WAIT_MS);
  const startReading = () => {
    clearTimeout(streamTimeout);
    if (lastReadAt === 0) read();
    else scheduleRead(1);
  };
  const { filter } = getQuery();
  const unsubscribe = filter && subscribe(filter, {
    onEvents: (events) => applyBatch({ events, tasks: [] }),
    onTaskChanges: (tasks) => applyBatch({ events: [], tasks }),
    onGap: (gap) => {
      if (gap !== "behind") scheduleRead(1);
    },
    onOpen: startReading,
  });
  onState(state);
  if (!filter) startReading();

  return {
    stop: () => {
      unsubscribe?.();
      readAbort?.abort();
      clearTimeout(readTimer);
      clearTimeout(streamTimeout);
    },
  };
}
