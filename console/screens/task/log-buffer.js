// The log lines read so far: bounded, with incremental search.

/** @typedef {import("../../data/api-types.js").LogLine} LogLine */
/** A search in a log. @typedef {{text: string, errorsOnly: boolean}} LogSearch */

/** Lines kept. Older lines are dropped, `LINES_DROPPED_AT_ONCE` at a time. */
const MAX_LINES = 200_000;
const LINES_DROPPED_AT_ONCE = 20_000;

export class LogBuffer {
  /** @param {number} [maxLines] @param {number} [dropAtOnce] */
  constructor(maxLines = MAX_LINES, dropAtOnce = LINES_DROPPED_AT_ONCE) {
    this.maxLines = maxLines;
    this.dropAtOnce = dropAtOnce;
    /** @type {LogLine[]} */
    this.lines = [];
    /** How many lines were dropped, which is also the number of the first kept line. */
    this.dropped = 0;
    /** @type {LogSearch} */
    this.search = { text: "", errorsOnly: false };
    /** Numbers of the matching lines. @type {number[]} */
    this.matches = [];
    this.searchedUpTo = 0;
  }

  /** The number after the last line. */
  get nextNumber() {
    return this.dropped + this.lines.length;
  }

  /** @param {number} number */
  lineAt(number) {
    return this.lines[number - this.dropped];
  }

  /** @param {LogLine[]} lines */
  push(lines) {
    for (const line of lines) this.lines.push(line);
    if (this.lines.length > this.maxLines + this.dropAtOnce) {
      this.dropped += this.lines.splice(0, this.lines.length - this.maxLines).length;
      this.matches = this.matches.filter((number) => number >= this.dropped);
      this.searchedUpTo = Math.max(this.searchedUpTo, this.dropped);
    }
  }

  /** Finds matching lines, and returns their numbers.
   * @param {LogSearch} search */
  find(search) {
    if (search.text !== this.search.text || search.errorsOnly !== this.search.errorsOnly) {
      this.search = search;
      this.matches = [];
      this.searchedUpTo = this.dropped;
    }
    const searchText = search.text.toLowerCase();
    for (; this.searchedUpTo < this.nextNumber; this.searchedUpTo += 1) {
      const { message, level } = this.lineAt(this.searchedUpTo);
      if ((!search.errorsOnly || level === "error") && (searchText === "" || message.toLowerCase().includes(searchText))) this.matches.push(this.searchedUpTo);
    }
    return this.matches;
  }
}
