// The tasks that match, read page by page and kept current.

import { api } from "../../data/api.js";
import { subscribe } from "../../data/stream.js";
import { useEffect, useRef, useSignal } from "../../parts/ui.js";
import { TaskRows } from "./rows.js";

/** @typedef {import("../../data/api-types.js").TaskPage} TaskPage */
/** @typedef {import("../../data/api-types.js").Task} Task */
/** @typedef {import("../../data/tasks.js").TaskFilter} TaskFilter */

/** How many are read at first, and at a time after that. */
const FIRST_PAGE_SIZE = 200;
const PAGE_SIZE = 1000;
/** Rows that are held at most; who wants more narrows the filter. */
export const MAX_ROWS = 200_000;
/** Where few match, an answer may be empty though there is more: so many are read in a row before the person is asked. */
const MAX_EMPTY_PAGES = 20;
/** What changes is drawn at once, and read anew this often at most: a change does not tell all of a task. */
const MIN_REFRESH_MS = 2000;
/** Nodes do not tell of each other's tasks. */
const POLL_MS = 15_000;
const DRAW_DELAY_MS = 150;
const MAX_NEWER = 10_000;

/** `newer` counts those that came while the list is scrolled away from its top, where they would move what is looked at.
 * @typedef {{rows: Task[], next: string | null, loading: boolean, reading: boolean, error: unknown, newer: number}} TaskListState */

/** @type {TaskListState} */
const INITIAL_STATE = { rows: [], next: null, loading: true, reading: false, error: null, newer: 0 };

/** @param {TaskFilter} wanted */
export function useTaskList(wanted) {
  const state = useSignal(INITIAL_STATE);
  const hands = useRef({ more: () => {}, reload: () => {}, seen: (/** @type {number} */ _) => {} });
  useEffect(() => {
    const list = followTasks(wanted, (next) => {
      state.value = next;
    });
    hands.current = list;
    return list.stop;
  }, [JSON.stringify(wanted)]);
  return { ...state.value, more: () => hands.current.more(), reload: () => hands.current.reload(), seen: (/** @type {number} */ first) => hands.current.seen(first) };
}

/** @param {TaskFilter} wanted @param {(state: TaskListState) => void} show */
function followTasks(wanted, show) {
  let rows = new TaskRows(wanted);
  let state = INITIAL_STATE;
  /** Those that came while the list is scrolled. @type {Set<string>} */
  const newer = new Set();
  let first = 0;
  let stale = false;
  let readAt = Date.now();
  const over = new AbortController();
  const { signal } = over;
  /** @type {import("../../data/filter.js").TaskChange[]} */
  let heard = [];
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let drawing;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let looking;

  /** @param {Partial<TaskListState>} change */
  const set = (change) => {
    if (signal.aborted) return;
    state = { ...state, ...change };
    show(state);
  };
  const draw = () => set({ rows: rows.all, next: rows.next });
  /** @param {string | null} cursor @param {number} limit
   * @returns {Promise<TaskPage>} */
  const ask = (cursor, limit) => api.get("/api/v1/tasks", { query: { ...wanted, limit, cursor }, signal });

  async function begin() {
    newer.clear();
    set({ loading: state.rows.length === 0, reading: true, error: null, newer: 0 });
    const fresh = new TaskRows(wanted);
    await further(fresh, null, FIRST_PAGE_SIZE);
    if (!state.error) rows = fresh;
    set({ loading: false });
    draw();
  }

  async function more() {
    if (state.reading || state.loading || rows.next === null || rows.all.length >= MAX_ROWS) return;
    set({ reading: true, error: null });
    await further(rows, rows.next, PAGE_SIZE);
    draw();
  }

  /** Reads on until something is found.
   * @param {TaskRows} into @param {string | null} from @param {number} limit */
  async function further(into, from, limit) {
    let cursor = from;
    try {
      for (let empty = 0; empty < MAX_EMPTY_PAGES; empty += 1) {
        const { tasks, next } = await ask(cursor, limit);
        into.append({ cursor, next, tasks });
        if (tasks.length > 0 || next === null) break;
        cursor = next;
      }
      set({ reading: false });
    } catch (error) {
      set({ reading: false, error });
    }
  }

  /** Reads the page that is looked at anew. New ones appear at the top, unless that would move what is looked at. */
  async function look() {
    stale = false;
    readAt = Date.now();
    const mine = rows;
    const page = rows.pageAt(first);
    if (page) {
      const still = first > 0;
      const room = page === rows.pages[0] ? 50 : 0;
      try {
        const fresh = await ask(page.cursor, Math.min(PAGE_SIZE, Math.max(FIRST_PAGE_SIZE, page.tasks.length + room)));
        if (mine !== rows || signal.aborted) return;
        // So much has come that the two do not meet: the list begins anew.
        if (!rows.refresh(page, fresh, still) && !still) {
          rows = new TaskRows(wanted);
          rows.append({ cursor: null, next: fresh.next, tasks: fresh.tasks });
        }
        if (!still) {
          newer.clear();
          set({ newer: 0 });
        }
        draw();
      } catch {
        // The connection tells of its own troubles; what is shown stays.
      }
    } else if (/** @type {{passing?: boolean} | null} */ (state.error)?.passing) {
      await begin();
    }
    plan();
  }

  function plan() {
    clearTimeout(looking);
    if (signal.aborted) return;
    const wait = stale ? MIN_REFRESH_MS : POLL_MS;
    looking = setTimeout(look, Math.max(0, readAt + wait - Date.now()));
  }

  function anew() {
    stale = true;
    plan();
  }

  function work() {
    drawing = undefined;
    const changes = heard;
    heard = [];
    const { touched, unknown } = rows.apply(changes);
    if (touched) draw();
    if (first > 0 && unknown.length) {
      for (const id of unknown) if (newer.size < MAX_NEWER) newer.add(id);
      set({ newer: newer.size });
    }
    if ((touched || unknown.length) && !stale) anew();
  }

  const quiet = subscribe({ tasks: true, tenant: wanted.tenant, key: wanted.key }, {
    tasks: (list) => {
      heard.push(...list);
      drawing ??= setTimeout(work, DRAW_DELAY_MS);
    },
    // What changed before the stream was there is in no snapshot that was read before, either.
    gap: anew,
    open: anew,
  });
  show(state);
  begin().then(plan);
  return {
    more,
    reload: begin,
    /** @param {number} index */
    seen: (index) => {
      first = index;
      if (index === 0 && state.newer > 0) look();
    },
    stop: () => {
      quiet();
      over.abort();
      clearTimeout(drawing);
      clearTimeout(looking);
    },
  };
}
