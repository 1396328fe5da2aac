// Lists that grow at their newest end and are read backwards, page by page: the newest page is kept current, older ones
// are read when somebody asks for them.

import { useEffect, useRef } from "../vendor/preact-hooks.js";
import { useSignal } from "../vendor/signals.js";
import { useLiveData } from "./live-data.js";

/** `next` is where to read on; null at the end.
 * @template T
 * @typedef {{eventId?: number, rows: T[], next: string | number | null}} ListPage */

/** @template T
 * @typedef {object} PagedQuery
 * @property {(before: string | number | null, signal: AbortSignal) => Promise<ListPage<T>>} read
 * @property {(row: T) => string | number} id
 * @property {import("./filter.js").StreamFilter} [filter]
 * @property {number} [every]
 * @property {number} [calm]
 */

/** @template T
 * @param {PagedQuery<T>} plan @param {unknown[]} deps
 * @returns {import("./live-data.js").LiveData<T[]> & {more: (() => void) | null}} `more` reads the next page; null at the end */
export function usePages(plan, deps) {
  const newest = useLiveData({ read: (signal) => plan.read(null, signal), filter: plan.filter, every: plan.every, calm: plan.calm }, deps);
  const older = useSignal(/** @type {{rows: T[], next: string | number | null} | null} */ (null));
  const reading = useRef(/** @type {AbortController | null} */ (null));
  const failed = useSignal(/** @type {unknown} */ (null));
  useEffect(() => {
    older.value = null;
    failed.value = null;
    return () => {
      reading.current?.abort();
      reading.current = null;
    };
  }, deps);

  const page = newest.data;
  const known = new Set((page?.rows ?? []).map(plan.id));
  const before = older.value;
  // More came at once than a page holds: between the two something would be missing.
  const torn = page !== null && before !== null && before.rows.length > 0 && page.next !== null
    && !before.rows.some((row) => known.has(plan.id(row)));
  useEffect(() => {
    if (torn) older.value = null;
  }, [torn]);
  const rest = before === null || torn ? [] : before.rows.filter((row) => !known.has(plan.id(row)));
  const next = before === null || torn ? (page?.next ?? null) : before.next;

  const more = async () => {
    if (reading.current || next === null || page === null) return;
    const mine = new AbortController();
    reading.current = mine;
    try {
      const read = await plan.read(next, mine.signal);
      if (mine.signal.aborted) return;
      // What is newest now is kept too: it will be older when the next page of news pushes it out.
      const all = [...page.rows, ...rest, ...read.rows];
      older.value = { rows: all, next: read.next };
      failed.value = null;
    } catch (error) {
      if (!mine.signal.aborted) failed.value = error;
    } finally {
      if (reading.current === mine) reading.current = null;
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
