// The matching tasks, read page by page and kept current.

import { api } from "../../data/api.js";
import { subscribe } from "../../data/stream.js";
import { useEffect, useRef, useSignal } from "../../parts/ui.js";
import { TaskRows } from "./rows.js";

/** @typedef {import("../../data/api-types.js").TaskPage} TaskPage */
/** @typedef {import("../../data/api-types.js").Task} Task */
/** @typedef {import("../../data/tasks.js").TaskFilter} TaskFilter */

/** Size of the first page and of the following ones. */
const FIRST_PAGE_SIZE = 200;
const PAGE_SIZE = 1000;
/** Maximum rows; more need a narrower filter. */
export const MAX_ROWS = 200_000;
/** A page may be empty though there are more tasks: this many empty pages are read in a row. */
const MAX_EMPTY_PAGES = 20;
/** Changes are shown at once; pages are read again at most this often, since a change lacks some fields of a task. */
const MIN_REFRESH_MS = 2000;
/** A node does not stream task changes of its peers. */
const POLL_MS = 15_000;
const DRAW_DELAY_MS = 150;
const MAX_NEWER_IDS = 10_000;

/** `newerCount` counts new tasks while the list is scrolled down, where inserting them would move the visible rows.
 * @typedef {{rows: Task[], next: string | null, loading: boolean, reading: boolean, error: unknown, newerCount: number}}
 * TaskListState */

/** @type {TaskListState} */
const INITIAL_STATE = { rows: [], next: null, loading: true, reading: false, error: null, newerCount: 0 };

/** @param {TaskFilter} filter */
export function useTaskList(filter) {
  const state = useSignal(INITIAL_STATE);
  const controls = useRef({ loadMore: () => {}, reload: () => {}, setFirstVisible: (/** @type {number} */ _) => {} });
  useEffect(() => {
    const list = followTaskList(filter, (next) => {
      state.value = next;
    });
    controls.current = list;
    return list.stop;
  }, [JSON.stringify(filter)]);
  return { ...state.value, loadMore: () => controls.current.loadMore(), reload: () => controls.current.reload(), setFirstVisible: (/** @type {number} */ first) => controls.current.setFirstVisible(first) };
}

/** @param {TaskFilter} filter @param {(state: TaskListState) => void} onState */
function followTaskList(filter, onState) {
  let rows = new TaskRows(filter);
  let state = INITIAL_STATE;
  /** Ids of new tasks while the list is scrolled down. @type {Set<string>} */
  const newerIds = new Set();
  let firstVisible = 0;
  let isStale = false;
  let lastReadAt = Date.now();
  const abortController = new AbortController();
  const { signal } = abortController;
  /** @type {import("../../data/api-types.js").TaskChange[]} */
  let pendingChanges = [];
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let drawTimer;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let refreshTimer;

  /** @param {Partial<TaskListState>} change */
  const updateState = (change) => {
    if (signal.aborted) return;
    state = { ...state, ...change };
    onState(state);
  };
  const showRows = () => updateState({ rows: rows.all, next: rows.next });
  /** @param {string | null} cursor @param {number} limit
   * @returns {Promise<TaskPage>} */
  const requestPage = (cursor, limit) => api.get("/api/v1/tasks", { query: { ...filter, limit, cursor }, signal });

  async function readFirstPage() {
    newerIds.clear();
    updateState({ loading: state.rows.length === 0, reading: true, error: null, newerCount: 0 });
    const newRows = new TaskRows(filter);
    await readPages(newRows, null, FIRST_PAGE_SIZE);
    if (!state.error) rows = newRows;
    updateState({ loading: false });
    showRows();
  }

  async function loadMore() {
    if (state.reading || state.loading || rows.next === null || rows.all.length >= MAX_ROWS) return;
    updateState({ reading: true, error: null });
    await readPages(rows, rows.next, PAGE_SIZE);
    showRows();
  }

  /** Reads pages until one has tasks.
   * @param {TaskRows} target @param {string | null} firstCursor @param {number} limit */
  async function readPages(target, firstCursor, limit) {
    let cursor = firstCursor;
    try {
      for (let empty = 0; empty < MAX_EMPTY_PAGES; empty += 1) {
        const { tasks, next } = await requestPage(cursor, limit);
        target.append({ cursor, next, tasks });
        if (tasks.length > 0 || next === null) break;
        cursor = next;
      }
      updateState({ reading: false });
    } catch (error) {
      updateState({ reading: false, error });
    }
  }

  /** Reads the visible page again. New tasks appear at the top, unless that would move the visible rows. */
  async function refresh() {
    isStale = false;
    lastReadAt = Date.now();
    const rowsBefore = rows;
    const page = rows.pageAt(firstVisible);
    if (page) {
      const keepPosition = firstVisible > 0;
      const extraRows = page === rows.pages[0] ? 50 : 0;
      try {
        const freshPage = await requestPage(page.cursor, Math.min(PAGE_SIZE, Math.max(FIRST_PAGE_SIZE, page.tasks.length + extraRows)));
        if (rowsBefore !== rows || signal.aborted) return;
        // The pages no longer overlap: the list starts again.
        if (!rows.refresh(page, freshPage, keepPosition) && !keepPosition) {
          rows = new TaskRows(filter);
          rows.append({ cursor: null, next: freshPage.next, tasks: freshPage.tasks });
        }
        if (!keepPosition) {
          newerIds.clear();
          updateState({ newerCount: 0 });
        }
        showRows();
      } catch {
        // The live indicator shows connection errors; the rows stay.
      }
    } else if (/** @type {{isTransient?: boolean} | null} */ (state.error)?.isTransient) {
      await readFirstPage();
    }
    scheduleRefresh();
  }

  function scheduleRefresh() {
    clearTimeout(refreshTimer);
    if (signal.aborted) return;
    const intervalMs = isStale ? MIN_REFRESH_MS : POLL_MS;
    refreshTimer = setTimeout(refresh, Math.max(0, lastReadAt + intervalMs - Date.now()));
  }

  function markStale() {
    isStale = true;
    scheduleRefresh();
  }

  function applyPending() {
    drawTimer = undefined;
    const changes = pendingChanges;
    pendingChanges = [];
    const { hasChanges, unloadedIds } = rows.apply(changes);
    if (hasChanges) showRows();
    if (firstVisible > 0 && unloadedIds.length) {
      for (const id of unloadedIds) if (newerIds.size < MAX_NEWER_IDS) newerIds.add(id);
      updateState({ newerCount: newerIds.size });
    }
    if ((hasChanges || unloadedIds.length) && !isStale) markStale();
  }

  const unsubscribe = subscribe({ tasks: true, tenant: filter.tenant, key: filter.key }, {
    onTaskChanges: (changes) => {
      pendingChanges.push(...changes);
      drawTimer ??= setTimeout(applyPending, DRAW_DELAY_MS);
    },
    // Changes before the stream opened may be missing in the pages read before.
    onGap: markStale,
    onOpen: markStale,
  });
  onState(state);
  readFirstPage().then(scheduleRefresh);
  return {
    loadMore,
    reload: readFirstPage,
    /** @param {number} index */
    setFirstVisible: (index) => {
      firstVisible = index;
      if (index === 0 && state.newerCount > 0) refresh();
    },
    stop: () => {
      unsubscribe();
      abortController.abort();
      clearTimeout(drawTimer);
      clearTimeout(refreshTimer);
    },
  };
}
