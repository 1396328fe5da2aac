// Lists with the newest row first, read page by page: the newest page is kept current, older pages are read on demand.

import { useEffect, useRef } from "../vendor/preact-hooks.js";
import { useSignal } from "../vendor/signals.js";
import { useLiveData } from "./live-data.js";

/** `next` is the cursor of the next page; null at the end.
 * @template T
 * @typedef {{eventId?: number, rows: T[], next: string | number | null}} ListPage */

/** @template T
 * @typedef {object} PagedQuery
 * @property {(before: string | number | null, signal: AbortSignal) => Promise<ListPage<T>>} read
 * @property {(row: T) => string | number} rowId
 * @property {import("./stream-filter.js").StreamFilter} [filter]
 * @property {number} [pollInterval]
 * @property {number} [minInterval]
 */

/** @template T
 * @param {PagedQuery<T>} query @param {unknown[]} deps
 * @returns {import("./live-data.js").LiveData<T[]> & {loadMore: (() => void) | null}} `loadMore` reads the next page; null
 * at the end */
export function usePagedList(query, deps) {
  const newest = useLiveData({ read: (signal) => query.read(null, signal), filter: query.filter, pollInterval: query.pollInterval, minInterval: query.minInterval }, deps);
  const olderPages = useSignal(/** @type {{rows: T[], next: string | number | null} | null} */ (null));
  const readAbort = useRef(/** @type {AbortController | null} */ (null));
  const loadError = useSignal(/** @type {unknown} */ (null));
  useEffect(() => {
    olderPages.value = null;
    loadError.value = null;
    return () => {
      readAbort.current?.abort();
      readAbort.current = null;
    };
  }, deps);

  const newestPage = newest.data;
  const newestIds = new Set((newestPage?.rows ?? []).map(query.rowId));
  const loaded = olderPages.value;
  // More rows arrived than fit on a page: rows between the two pages would be missing.
  const hasGap = newestPage !== null && loaded !== null && loaded.rows.length > 0 && newestPage.next !== null
    && !loaded.rows.some((row) => newestIds.has(query.rowId(row)));
  useEffect(() => {
    if (hasGap) olderPages.value = null;
  }, [hasGap]);
  const olderRows = loaded === null || hasGap ? [] : loaded.rows.filter((row) => !newestIds.has(query.rowId(row)));
  const nextCursor = loaded === null || hasGap ? (newestPage?.next ?? null) : loaded.next;

  const loadMore = async () => {
    if (readAbort.current || nextCursor === null || newestPage === null) return;
    const thisRead = new AbortController();
    readAbort.current = thisRead;
    try {
      const nextPage = await query.read(nextCursor, thisRead.signal);
      if (thisRead.signal.aborted) return;
      // Also keeps the rows of the newest page: newer rows will displace them there.
      const allRows = [...newestPage.rows, ...olderRows, ...nextPage.rows];
      olderPages.value = { rows: allRows, next: nextPage.next };
      loadError.value = null;
    } catch (error) {
      if (!thisRead.signal.aborted) loadError.value = error;
    } finally {
      if (readAbort.current === thisRead) readAbort.current = null;
    }
  };
  return {
    data: newestPage === null ? null : [...newestPage.rows, ...olderRows],
    error: newest.error ?? loadError.value,
    loading: newest.loading,
    reload: newest.reload,
    loadMore: nextCursor === null ? null : loadMore,
  };
}
