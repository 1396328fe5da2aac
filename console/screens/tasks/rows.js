// The loaded pages of the task list, updated by changes and by new reads. Sends no requests.

import { applyTaskChange, matchesTaskFilter } from "../../data/tasks.js";

/** @typedef {import("../../data/api-types.js").Task} Task */
/** @typedef {import("../../data/api-types.js").TaskChange} TaskChange */
/** @typedef {import("../../data/tasks.js").TaskFilter} TaskFilter */

/** A page read from a cursor; `next` is the cursor of the following page.
 * @typedef {{cursor: string | null, next: string | null, tasks: Task[]}} LoadedPage */

export class TaskRows {
  /** @param {TaskFilter} filter */
  constructor(filter) {
    this.filter = filter;
    /** @type {LoadedPage[]} */
    this.pages = [];
    /** All rows, newest first. A new array after each change. @type {Task[]} */
    this.all = [];
    /** The page of each task. @type {Map<string, LoadedPage>} */
    this.pageByTask = new Map();
  }

  /** The cursor of the next page, or null at the end. */
  get next() {
    return this.pages.at(-1)?.next ?? null;
  }

  /** @param {LoadedPage} page */
  append(page) {
    // A task that moved may appear on two pages.
    const added = { ...page, tasks: page.tasks.filter((task) => !this.pageByTask.has(task.id)) };
    for (const task of added.tasks) this.pageByTask.set(task.id, added);
    this.pages.push(added);
    this.#rebuildRows();
  }

  /** The page of the row at an index.
   * @param {number} index */
  pageAt(index) {
    let rowsSoFar = 0;
    for (const page of this.pages) {
      rowsSoFar += page.tasks.length;
      if (index < rowsSoFar) return page;
    }
    return this.pages.at(-1) ?? null;
  }

  /** Replaces a page with a new read. Returns false if the read does not overlap the loaded rows, so that rows
   * between them may be missing.
   * @param {LoadedPage} page @param {{tasks: Task[], next: string | null}} fresh
   * @param {boolean} [keepPosition] leaves out newer tasks, so that no row moves */
  refresh(page, { tasks, next }, keepPosition = false) {
    const freshIds = new Set(tasks.map((task) => task.id));
    const overlaps = next === null || page.tasks.length === 0 || page.tasks.some((task) => freshIds.has(task.id));
    if (!overlaps) return false;
    const newest = keepPosition ? (page.tasks[0]?.created_at ?? "") : "~";
    const oldest = tasks.at(-1)?.created_at ?? "";
    const acceptedTasks = tasks.filter((task) => task.created_at <= newest && (this.pageByTask.get(task.id) ?? page) === page);
    // Tasks older than the response were not requested; newer ones that are not in it no longer match.
    const olderTasks = next === null ? [] : page.tasks.filter((task) => !freshIds.has(task.id) && task.created_at <= oldest);
    for (const task of page.tasks) this.pageByTask.delete(task.id);
    page.tasks = [...acceptedTasks, ...olderTasks];
    for (const task of page.tasks) this.pageByTask.set(task.id, page);
    if (next === null) this.#dropPagesAfter(page);
    this.#rebuildRows();
    return true;
  }

  /** Removes the pages after this one. @param {LoadedPage} page */
  #dropPagesAfter(page) {
    page.next = null;
    for (const laterPage of this.pages.splice(this.pages.indexOf(page) + 1)) {
      for (const task of laterPage.tasks) this.pageByTask.delete(task.id);
    }
  }

  /** Applies changes. Returns whether a row changed, and the ids of tasks that are not loaded but may match.
   * @param {TaskChange[]} changes */
  apply(changes) {
    const latest = new Map(changes.map((change) => [change.id, change]));
    let hasChanges = false;
    /** @type {string[]} */
    const unloadedIds = [];
    for (const [id, change] of latest) {
      const page = this.pageByTask.get(id);
      const isMatch = matchesTaskFilter(this.filter, change);
      if (!page) {
        if (isMatch) unloadedIds.push(id);
        continue;
      }
      hasChanges = true;
      const index = page.tasks.findIndex((task) => task.id === id);
      if (isMatch) page.tasks[index] = applyTaskChange(page.tasks[index], change);
      else {
        page.tasks.splice(index, 1);
        this.pageByTask.delete(id);
      }
    }
    if (hasChanges) this.#rebuildRows();
    return { hasChanges, unloadedIds };
  }

  #rebuildRows() {
    this.all = this.pages.flatMap((page) => page.tasks);
  }
}
