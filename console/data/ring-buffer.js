// The newest so many of a row of things. What is beyond that is forgotten and counted.

/** @template T */
export class RingBuffer {
  /** @param {number} most */
  constructor(most) {
    this.most = most;
    /** The oldest first. @type {T[]} */
    this.items = [];
    /** How many were forgotten. */
    this.dropped = 0;
  }

  /** @param {T[]} list */
  push(list) {
    // A new array each time: who shows it sees that it is another one.
    const all = this.items.concat(list);
    const over = Math.max(0, all.length - this.most);
    this.dropped += over;
    this.items = over ? all.slice(over) : all;
  }

  clear() {
    this.items = [];
    this.dropped = 0;
  }
}
