// The log lines read so far: bounded, with incremental search.

/** @typedef {import("../../data/api-types.js").LogLine} LogLine */
/** A search in a log. @typedef {{text: string, errors: boolean}} LogSearch */

/** Lines kept. Older lines are dropped, `DROPPED_AT_ONCE` at a time. */
const MAX_LINES = 200_000;
const DROPPED_AT_ONCE = 20_000;

export class LogBuffer {
  /** @param {number} [maxLines] @param {number} [dropAtOnce] */
  constructor(maxLines = MAX_LINES, dropAtOnce = DROPPED_AT_ONCE) {
    this.maxLines = maxLines;
    this.dropAtOnce = dropAtOnce;
    /** @type {LogLine[]} */
    this.lines = [];
    /** Dropped lines, which is the number of the first kept line. */
    this.dropped = 0;
    /** @type {LogSearch} */
    this.search = { text: "", errors: false };
    /** Numbers of the matching lines. @type {number[]} */
    this.found = [];
    this.searched = 0;
  }

  /** The number after the last line. */
  get nextNumber() {
    return this.dropped + this.lines.length;
  }

  /** @param {number} number */
  line(number) {
    return this.lines[number - this.dropped];
  }

  /** @param {LogLine[]} lines */
  push(lines) {
    for (const line of lines) this.lines.push(line);
    if (this.lines.length > this.maxLines + this.dropAtOnce) {
      this.dropped += this.lines.splice(0, this.lines.length - this.maxLines).length;
      this.found = this.found.filter((number) => number >= this.dropped);
      this.searched = Math.max(this.searched, this.dropped);
    }
  }

  /** Finds matching lines, and returns their numbers.
   * @param {LogSearch} search */
  find(search) {
    if (search.text !== this.search.text || search.errors !== this.search.errors) {
      this.search = search;
      this.found = [];
      this.searched = this.dropped;
    }
    const searchText = search.text.toLowerCase();
    for (; this.searched < this.nextNumber; this.searched += 1) {
      const { message, level } = this.line(this.searched);
      if ((!search.errors || level === "error") && (searchText === "" || message.toLowerCase().includes(searchText))) this.found.push(this.searched);
    }
    return this.found;
  }
}
