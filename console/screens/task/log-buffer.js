// The lines of a log as far as they were read: bounded, and searched without looking at any of them twice.

/** @typedef {import("../../data/api-types.js").LogLine} LogLine */
/** What is looked for in a log. @typedef {{text: string, errors: boolean}} LogSearch */

/** How many lines are kept. When there are more, the oldest go, a stretch at a time. */
const MAX_LINES = 200_000;
const DROPPED_AT_ONCE = 20_000;

export class LogBuffer {
  /** @param {number} [most] @param {number} [stretch] */
  constructor(most = MAX_LINES, stretch = DROPPED_AT_ONCE) {
    this.most = most;
    this.stretch = stretch;
    /** @type {LogLine[]} */
    this.lines = [];
    /** How many were let go: the number of the first that is there. */
    this.dropped = 0;
    /** @type {LogSearch} */
    this.search = { text: "", errors: false };
    /** The numbers of the lines that were found. @type {number[]} */
    this.found = [];
    this.searched = 0;
  }

  /** The number behind the last line. */
  get end() {
    return this.dropped + this.lines.length;
  }

  /** @param {number} number */
  line(number) {
    return this.lines[number - this.dropped];
  }

  /** @param {LogLine[]} lines */
  push(lines) {
    for (const line of lines) this.lines.push(line);
    if (this.lines.length > this.most + this.stretch) {
      this.dropped += this.lines.splice(0, this.lines.length - this.most).length;
      this.found = this.found.filter((number) => number >= this.dropped);
      this.searched = Math.max(this.searched, this.dropped);
    }
  }

  /** The numbers of the lines that have this in them.
   * @param {LogSearch} search */
  find(search) {
    if (search.text !== this.search.text || search.errors !== this.search.errors) {
      this.search = search;
      this.found = [];
      this.searched = this.dropped;
    }
    const wanted = search.text.toLowerCase();
    for (; this.searched < this.end; this.searched += 1) {
      const { message, level } = this.line(this.searched);
      if ((!search.errors || level === "error") && (wanted === "" || message.toLowerCase().includes(wanted))) this.found.push(this.searched);
    }
    return this.found;
  }
}
