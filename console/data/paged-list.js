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
 * @property {(row: T) => string | number} id
 * @property {import("./filter.js").StreamFilter} [filter]
 * @property {number} [pollInterval]
 * @property {number} [minInterval]
 */

/** @template T
 * @param {PagedQuery<T>} query @param {unknown[]} deps
 * @returns {import("./live-data.js").LiveData<T[]> & {more: (() => void) | null}} `more` reads the next page; null at
 * the end */
export function usePages(query, deps) {
  const newest = useLiveData({ read: (signal) => query.read(null, signal), filter: query.filter, pollInterval: query.pollInterval, minInterval: query.minInterval }, deps);
  const older = useSignal(/** @type {{rows: T[], next: string | number | null} | null} */ (null));
  const readAbort = useRef(/** @type {AbortController | null} */ (null));
  const failed = useSignal(/** @type {unknown} */ (null));
  useEffect(() => {
    older.value = null;
    failed.value = null;
    return () => {
      readAbort.current?.abort();
      readAbort.current = null;
    };
  }, deps);

  const page = newest.data;
  const newestIds = new Set((page?.rows ?? []).map(query.id));
  const loaded = older.value;
  // More rows arrived than fit on a page: rows between the two pages would be missing.
  const hasGap = page !== null && loaded !== null && loaded.rows.length > 0 && page.next !== null
    && !loaded.rows.some((row) => newestIds.has(query.id(row)));
  useEffect(() => {
    if (hasGap) older.value = null;
  }, [hasGap]);
  const rest = loaded === null || hasGap ? [] : loaded.rows.filter((row) => !newestIds.has(query.id(row)));
  const next = loaded === null || hasGap ? (page?.next ?? null) : loaded.next;

  const more = async () => {
    if (readAbort.current || next === null || page === null) return;
    const thisRead = new AbortController();
    readAbort.current = thisRead;
    try {
      const read = await query.read(next, thisRead.signal);
      if (thisRead.signal.aborted) return;
      // Keeps the current newest page, too: newer rows will push it out.
      const all = [...page.rows, ...rest, ...read.rows];
      older.value = { rows: all, next: read.next };
      failed.value = null;
    } catch (error) {
      if (!thisRead.signal.aborted) failed.value = error;
    } finally {
      if (readAbort.current === thisRead) readAbort.current = null;
    }
  };
  return {
    data: page === null ? null : [...page.rows, ...rest],
    error: newest.error ?? failed.value,
    loading: newest.loading,
    reload: newest.reload,
    more: next === null ? null : more,
  };
}
