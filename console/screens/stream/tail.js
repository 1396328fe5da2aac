// The newest of the journal: read backwards once, then followed. Bounded, however fast it goes.

import { api } from "../../data/api.js";
import { subscribe } from "../../data/stream.js";
import { RingBuffer } from "../../data/ring-buffer.js";
import { useEffect, useRef, useSignal } from "../../parts/ui.js";
import { eventRow, gapRow, taskRow } from "./rows.js";

/** @typedef {import("../../data/filter.js").StreamFilter} StreamFilter */
/** @typedef {import("./rows.js").StreamRow} StreamRow */

/** How many rows are kept, and how many are read at first. */
const MAX_ROWS = 5000;
export const FIRST_ROWS = 200;

const GAP_TEXTS = {
  torn: "Torn stream: events here expired before this page could read them.",
  behind: "This page could not keep up, and events are left out here. Reload to see the newest without a gap.",
};

/** @typedef {{rows: StreamRow[], error: unknown, loading: boolean, torn: boolean, searching: boolean, held: number, dropped: number}} TailState */

/** @param {{filter: StreamFilter, history: number, paused: boolean}} wish */
export function useStreamTail({ filter, history, paused }) {
  const state = useSignal(/** @type {TailState} */ ({ rows: [], error: null, loading: true, torn: false, searching: false, held: 0, dropped: 0 }));
  const still = useRef(paused);
  still.current = paused;
  const again = useSignal(0);
  const release = useRef(() => {});

  useEffect(() => {
    /** @type {RingBuffer<StreamRow>} */
    const ring = new RingBuffer(MAX_ROWS);
    /** What came while the page stands still, bounded like the rest. @type {RingBuffer<StreamRow>} */
    const held = new RingBuffer(MAX_ROWS);
    const reading = new AbortController();
    let newest = 0;
    let read = false;
    let torn = false;
    let searching = false;
    /** @type {unknown} */
    let error = null;
    const show = () => {
      state.value = { rows: ring.items, error, loading: !read && !error, torn, searching, held: held.items.length + held.dropped, dropped: ring.dropped };
    };
    /** @param {StreamRow[]} rows */
    const add = (rows) => {
      if (rows.length === 0) return;
      (still.current || !read ? held : ring).push(rows);
      show();
    };
    release.current = () => {
      if (held.dropped) ring.push([gapRow(`${held.dropped} more arrived while the stream was paused and are left out here.`)]);
      ring.push(held.items);
      held.clear();
      show();
    };
    const { types, key, path, tenant } = filter;
    const query = { limit: -history, return: types?.join(","), key, path, tenant };
    /** What was there before; `far` has the server look through a long journal to its end.
     * @param {boolean} far */
    const before = async (far) => {
      const seq = await api.get("/api/v1/events", { query: { ...query, timeout: far ? "30s" : "" }, signal: reading.signal, exact: true });
      // A server looks only for a moment unless it is told to take its time.
      searching = !far && seq.TYPE === "Empty" && seq.lastEventId < seq.eventId;
      const found = (seq.eventSnapshots ?? []).reverse().map(eventRow);
      // The stream may bring again what is read here.
      newest = Math.max(newest, found.at(-1)?.eventId ?? 0);
      const seen = new Set(found.map((/** @type {StreamRow} */ row) => row.id));
      const since = [...ring.items, ...(read ? [] : held.items)].filter((row) => !seen.has(row.id));
      if (!read) held.clear();
      ring.clear();
      ring.push([...found, ...since]);
      read = true;
      show();
      if (searching) await before(true);
    };
    let begun = false;
    // Without the stream the journal is read all the same.
    const patience = setTimeout(() => begin(), 1000);
    const begin = () => {
      clearTimeout(patience);
      // Something may have come between that reading and the stream.
      if (begun && !torn) again.value += 1;
      if (begun) return;
      begun = true;
      before(false).catch((problem) => {
        if (reading.signal.aborted) return;
        error = problem;
        show();
      });
    };
    const quiet = subscribe(filter, {
      events: (events) => {
        const fresh = events.filter((event) => event.eventId > newest);
        newest = fresh.at(-1)?.eventId ?? newest;
        add(fresh.map(eventRow));
      },
      tasks: (list) => add(list.map(taskRow)),
      gap: (why) => {
        if (why === "back") return;
        torn = true;
        add([gapRow(GAP_TEXTS[why])]);
      },
      open: begin,
    });
    return () => {
      quiet();
      clearTimeout(patience);
      reading.abort();
    };
  }, [JSON.stringify(filter), history, again.value]);

  useEffect(() => {
    if (!paused) release.current();
  }, [paused]);

  return { ...state.value, reload: () => { again.value += 1; } };
}
