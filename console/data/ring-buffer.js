// Keeps the newest items up to a capacity, and counts the dropped ones.

/** @template T */
export class RingBuffer {
  /** @param {number} capacity */
  constructor(capacity) {
    this.capacity = capacity;
    /** The oldest first. @type {T[]} */
    this.items = [];
    /** How many items were dropped. */
    this.dropped = 0;
  }

  /** @param {T[]} list */
  push(list) {
    // A new array each time, so that components notice the change.
    const all = this.items.concat(list);
    const excess = Math.max(0, all.length - this.capacity);
    this.dropped += excess;
    this.items = excess ? all.slice(excess) : all;
  }

  clear() {
    this.items = [];
    this.dropped = 0;
  }
}
