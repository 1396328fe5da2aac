// The rows of the list of tasks: the pages that were read, kept current by what the stream tells and by reading a page
// anew. Nothing here asks the server.

import { applyTaskChange, matchesTaskFilter } from "../../data/tasks.js";

/** @typedef {import("../../data/api-types.js").Task} Task */
/** @typedef {import("../../data/filter.js").TaskChange} TaskChange */
/** @typedef {import("../../data/tasks.js").TaskFilter} TaskFilter */

/** What was read from a cursor on; `next` is where the page after it begins.
 * @typedef {{cursor: string | null, next: string | null, tasks: Task[]}} LoadedPage */

export class TaskRows {
  /** @param {TaskFilter} wanted */
  constructor(wanted) {
    this.wanted = wanted;
    /** @type {LoadedPage[]} */
    this.pages = [];
    /** All rows, the newest first. Another array after each change. @type {Task[]} */
    this.all = [];
    /** In which page a task is. @type {Map<string, LoadedPage>} */
    this.places = new Map();
  }

  /** Where to read on, or null at the end. */
  get next() {
    return this.pages.at(-1)?.next ?? null;
  }

  /** @param {LoadedPage} page */
  append(page) {
    // What changed its place meanwhile may come twice.
    const mine = { ...page, tasks: page.tasks.filter((task) => !this.places.has(task.id)) };
    for (const task of mine.tasks) this.places.set(task.id, mine);
    this.pages.push(mine);
    this.#flatten();
  }

  /** The page that a row is in, by its place among all.
   * @param {number} index */
  pageAt(index) {
    let before = 0;
    for (const page of this.pages) {
      before += page.tasks.length;
      if (index < before) return page;
    }
    return this.pages.at(-1) ?? null;
  }

  /** Works in what a page looks like now. Answers false where the answer does not reach down to what is known, so that
   * something between them may be missing.
   * @param {LoadedPage} page @param {{tasks: Task[], next: string | null}} fresh
   * @param {boolean} [still] leaves out what is newer than all of it, so that nothing moves */
  refresh(page, { tasks, next }, still = false) {
    const there = new Set(tasks.map((task) => task.id));
    const meets = next === null || page.tasks.length === 0 || page.tasks.some((task) => there.has(task.id));
    if (!meets) return false;
    const newest = still ? (page.tasks[0]?.created_at ?? "") : "~";
    const oldest = tasks.at(-1)?.created_at ?? "";
    const taken = tasks.filter((task) => task.created_at <= newest && (this.places.get(task.id) ?? page) === page);
    // Older ones than the answer has were not asked for; newer ones that it does not have no longer match.
    const rest = next === null ? [] : page.tasks.filter((task) => !there.has(task.id) && task.created_at <= oldest);
    for (const task of page.tasks) this.places.delete(task.id);
    page.tasks = [...taken, ...rest];
    for (const task of page.tasks) this.places.set(task.id, page);
    if (next === null) this.#endAfter(page);
    this.#flatten();
    return true;
  }

  /** There is nothing below this page. @param {LoadedPage} page */
  #endAfter(page) {
    page.next = null;
    for (const below of this.pages.splice(this.pages.indexOf(page) + 1)) {
      for (const task of below.tasks) this.places.delete(task.id);
    }
  }

  /** Works in what the stream told. Answers whether a row changed, and which are not here and may belong here.
   * @param {TaskChange[]} changes */
  apply(changes) {
    const latest = new Map(changes.map((change) => [change.id, change]));
    let touched = false;
    /** @type {string[]} */
    const unknown = [];
    for (const [id, change] of latest) {
      const page = this.places.get(id);
      const wanted = matchesTaskFilter(this.wanted, change);
      if (!page) {
        if (wanted) unknown.push(id);
        continue;
      }
      touched = true;
      const index = page.tasks.findIndex((task) => task.id === id);
      if (wanted) page.tasks[index] = applyTaskChange(page.tasks[index], change);
      else {
        page.tasks.splice(index, 1);
        this.places.delete(id);
      }
    }
    if (touched) this.#flatten();
    return { touched, unknown };
  }

  #flatten() {
    this.all = this.pages.flatMap((page) => page.tasks);
  }
}
