// A snapshot, and then what happened since.
//
//   listen ─▶ read the snapshot, keeping what comes meanwhile ─▶ apply what is newer than it ─▶ apply what comes
//                  ▲                                                                                │
//                  └─────────────── torn, behind, back after a break: read anew ◀──────────────────┘

import { useEffect, useRef } from "../vendor/preact-hooks.js";
import { useSignal } from "../vendor/signals.js";
import { subscribe } from "./stream.js";

/** @typedef {import("./filter.js").StreamFilter} StreamFilter */
/** @typedef {import("./filter.js").JournalEvent} JournalEvent */
/** @typedef {import("./filter.js").TaskChange} TaskChange */
/** @typedef {{events: JournalEvent[], tasks: TaskChange[]}} StreamBatch */

/** `error` stands beside `data` while what was read before is still shown.
 * @template T
 * @typedef {{data: T | null, error: unknown, loading: boolean, reload: () => void}} LiveData */

/** How to read something and keep it current.
 * @template T
 * @typedef {object} LiveQuery
 * @property {(signal: AbortSignal) => Promise<T>} read answers the snapshot; its `eventId`, if it has one, says which
 *   events are in it
 * @property {StreamFilter} [filter] what to listen to; without it nothing is followed
 * @property {(data: T, news: StreamBatch) => T | null} [apply] the state after the news; null if it has to be read anew. Without
 *   it any news has it read anew
 * @property {number} [calm] milliseconds between two reads at least; 1000 if not given
 * @property {number} [every] reads anew after so many milliseconds in any case: nodes do not tell of each other's tasks
 */

/** Reads and follows as a plan says, anew whenever one of `deps` changes.
 * @template T
 * @param {LiveQuery<T>} plan @param {unknown[]} deps
 * @returns {LiveData<T>} */
export function useLiveData(plan, deps) {
  const state = useSignal(/** @type {LiveData<T>} */ ({ data: null, error: null, loading: true, reload: () => {} }));
  const current = useRef(plan);
  current.current = plan;
  useEffect(() => {
    const followed = followQuery(() => current.current, (next) => {
      state.value = next;
    });
    return followed.stop;
  }, deps);
  return state.value;
}

/** How long the stream may take to open before something is shown without it. */
const STREAM_WAIT_MS = 1000;

/** The same without a component around it.
 * @template T
 * @param {() => LiveQuery<T>} plan @param {(state: LiveData<T>) => void} show */
export function followQuery(plan, show) {
  /** @type {LiveData<T>} */
  let state = { data: null, error: null, loading: true, reload: () => soon(0) };
  /** What came while a snapshot was being read. @type {StreamBatch | null} */
  let meanwhile = null;
  /** @type {AbortController | null} */
  let reading = null;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;
  let readAt = 0;
  let due = Infinity;
  let tries = 0;
  /** The newest event that is in what was read; the stream may bring it only later. */
  let stamp = 0;

  /** @param {Partial<LiveData<T>>} change */
  const set = (change) => {
    state = { ...state, ...change };
    show(state);
  };

  /** @param {number} wait */
  function soon(wait) {
    const at = Math.max(Date.now() + wait, wait === 0 ? 0 : readAt + (plan().calm ?? 1000));
    if (at >= due) return;
    due = at;
    clearTimeout(timer);
    timer = setTimeout(read, at - Date.now());
  }

  async function read() {
    due = Infinity;
    reading?.abort();
    const mine = new AbortController();
    reading = mine;
    meanwhile = { events: [], tasks: [] };
    readAt = Date.now();
    if (!state.loading) set({ loading: state.data === null });
    try {
      const data = await plan().read(mine.signal);
      if (mine.signal.aborted) return;
      const kept = /** @type {StreamBatch} */ (meanwhile);
      meanwhile = null;
      stamp = Number(/** @type {{eventId?: number} | null} */ (data)?.eventId ?? 0);
      tries = 0;
      set({ data, error: null, loading: false });
      take(kept);
    } catch (error) {
      if (mine.signal.aborted) return;
      meanwhile = null;
      tries += 1;
      set({ error, loading: false });
      // What the server refuses it will refuse again; what it could not do now may work soon.
      if (/** @type {{passing?: boolean}} */ (error).passing) soon(Math.min(15_000, 500 * 2 ** tries));
    }
    const { every } = plan();
    if (every) soon(every);
  }

  /** @param {StreamBatch} news */
  function take({ events: all, tasks }) {
    const events = all.filter((event) => event.eventId > stamp);
    if (events.length + tasks.length === 0) return;
    const { apply } = plan();
    if (meanwhile) {
      meanwhile.events.push(...events);
      meanwhile.tasks.push(...tasks);
    } else if (apply && state.data !== null) {
      const next = apply(state.data, { events, tasks });
      if (next === null) soon(1);
      else if (next !== state.data) set({ data: next });
    } else {
      soon(1);
    }
  }

  // Without the stream it is read all the same, and once more when the stream is there.
  const patience = setTimeout(read, STREAM_WAIT_MS);
  const begin = () => {
    clearTimeout(patience);
    if (readAt === 0) read();
    else soon(1);
  };
  const { filter } = plan();
  const quiet = filter && subscribe(filter, {
    events: (events) => take({ events, tasks: [] }),
    tasks: (tasks) => take({ events: [], tasks }),
    gap: (why) => {
      if (why !== "behind") soon(1);
    },
    open: begin,
  });
  show(state);
  if (!filter) begin();

  return {
    stop: () => {
      quiet?.();
      reading?.abort();
      clearTimeout(timer);
      clearTimeout(patience);
    },
  };
}
