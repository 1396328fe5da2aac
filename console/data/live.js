// The one connection of a page to the stream, and all who listen to it.
//
//   server ─▶ connection ─▶ pending ─▶ one delivery an animation frame ─▶ listeners, each by its filter
//                 ▲             │
//                 └─ not read while too much is pending, so that memory stays bounded
//
// It is opened while somebody listens and the page can be seen. When it breaks it comes back with `Last-Event-ID`, so
// that no event is missed; changes of tasks are, and listeners are told to look again.

import { signal } from "../vendor/signals.js";
import { address, exactly, problem, send } from "./api.js";
import { common, concerns, matches } from "./filter.js";
import { Problem, said } from "./problem.js";
import { token } from "./session.js";
import { frames } from "./sse.js";

/** @typedef {import("./filter.js").Filter} Filter */
/** @typedef {import("./filter.js").Event} Event */
/** @typedef {import("./filter.js").Change} Change */

/** Why a listener has to read its state anew: events are missing, or only changes of tasks may be.
 * @typedef {"torn" | "behind" | "back"} Gap */

/** `open` is called when nothing will be missed from then on: what is read after it is complete together with what is
 * heard. After `behind` it is called again.
 * @typedef {{events?: (list: Event[]) => void, tasks?: (list: Change[]) => void, gap?: (why: Gap) => void, open?: () => void}} Ears */
/** @typedef {{filter: Filter, ears: Ears, events: Event[], tasks: Change[], open: boolean}} Listener */

/** `open` once the server has answered; `waiting` until it is tried again; `refused` if that would not help. */
export const connection = signal(
  /** @type {{phase: "off" | "connecting" | "open" | "waiting" | "refused", why: string, tries: number, retryAt: number}} */ (
    { phase: "off", why: "", tries: 0, retryAt: 0 }),
);

/** Events a second, as they came lately. */
export const pulse = signal(0);

/** How many frames, and characters of them, may wait for a delivery before reading pauses. */
const MOST_PENDING = 5000;
const MOST_WEIGHT = 20_000_000;
/** How far the page may fall behind before it leaves out what lies between. */
const MOST_BEHIND_MS = 10_000;
/** How long a page that nobody sees keeps its connection: browsers have few for each server. */
const UNSEEN_MS = 20_000;
const LONGEST_WAIT_MS = 15_000;

/** @type {Set<Listener>} */
const listeners = new Set();
/** @type {AbortController | null} */
let open = null;
/** The last id that was read. @type {string | null} */
let last = null;
let asked = "";
let pending = 0;
/** The same in characters: events may be large. */
let weight = 0;
let frameAsked = false;
/** @type {(() => void)[]} */
let drained = [];
/** @type {ReturnType<typeof setTimeout> | undefined} */
let leaving;
/** Nobody has looked for a while. */
let left = false;
/** @type {(() => void) | null} */
let wake = null;

/** Listens until the answer is called.
 * @param {Filter} filter @param {Ears} ears */
export function listen(filter, ears) {
  /** @type {Listener} */
  const listener = { filter, ears, events: [], tasks: [], open: false };
  listeners.add(listener);
  settle();
  return () => {
    listeners.delete(listener);
    pending -= listener.events.length + listener.tasks.length;
    settle();
  };
}

/** Tries again at once if it waits to. */
export function reconnect() {
  wake?.();
}

/** Opens, reopens or closes the connection as the listeners need it. Screens change many listeners at once: the last
 * state of them counts. */
function settle() {
  queueMicrotask(() => {
    const wanted = listeners.size > 0 && token.value !== "" && !left;
    const query = wanted ? address("/api/v1/stream", common([...listeners].map((listener) => listener.filter))) : "";
    if (query === asked) {
      if (connection.value.phase === "open") greet(false);
      return;
    }
    asked = query;
    open?.abort();
    open = null;
    if (!wanted) {
      last = null;
      connection.value = { phase: "off", why: "", tries: 0, retryAt: 0 };
      return;
    }
    open = new AbortController();
    stay(query, open.signal);
  });
}

/** Keeps a connection until it is aborted.
 * @param {string} query @param {AbortSignal} signal */
async function stay(query, signal) {
  for (let tries = 0; !signal.aborted; tries += 1) {
    connection.value = { ...connection.value, phase: "connecting", tries };
    let why;
    try {
      await follow(query, signal, () => {
        tries = 0;
      });
      why = "The server ended the stream.";
    } catch (error) {
      why = said(error);
      if (error instanceof Problem && !error.passing && !signal.aborted) {
        connection.value = { phase: "refused", why, tries, retryAt: 0 };
        return;
      }
    }
    if (signal.aborted) return;
    const wait = tries === 0 ? 250 : Math.min(LONGEST_WAIT_MS, 500 * 2 ** tries) * (0.75 + Math.random() / 2);
    connection.value = { phase: "waiting", why, tries, retryAt: Date.now() + wait };
    await /** @type {Promise<void>} */ (new Promise((resolve) => {
      wake = resolve;
      setTimeout(resolve, wait);
      signal.addEventListener("abort", () => resolve(), { once: true });
    }));
    wake = null;
  }
}

/** Reads one connection to its end.
 * @param {string} query @param {AbortSignal} signal @param {() => void} opened */
async function follow(query, signal, opened) {
  /** @type {Record<string, string>} */
  const headers = last === null ? {} : { "last-event-id": last };
  const response = await send("GET", query, { headers: { ...headers, accept: "text/event-stream" }, signal });
  if (!response.ok) throw await problem(response);
  opened();
  connection.value = { phase: "open", why: "", tries: 0, retryAt: 0 };
  greet(true);
  let least = Infinity;
  for await (const list of frames(response)) {
    if (signal.aborted) return;
    for (const { id, event, data } of list) {
      // Events have an id, and types that users choose: what the stream tells of itself has none.
      if (event === "Torn" && id === null) {
        last = String(JSON.parse(data).eventId);
        tell("torn");
        return;
      }
      if (id !== null) last = id;
      if (data) hand(event === "task" && id === null, data);
    }
    const away = last === null ? 0 : Date.now() - Number(last) / 1000;
    // Clocks differ: what counts is how much later than usual events come.
    least = Math.min(least, away);
    if (pending <= MOST_PENDING && weight <= MOST_WEIGHT) continue;
    if (away - least > MOST_BEHIND_MS) {
      last = null;
      tell("behind");
      return;
    }
    await new Promise((resolve) => drained.push(() => resolve(undefined)));
  }
}

/** @param {boolean} change whether it is one of a task @param {string} data */
function hand(change, data) {
  const body = exactly(data);
  counted += 1;
  for (const listener of listeners) {
    if (change) {
      if (!listener.ears.tasks || !concerns(listener.filter, body)) continue;
      listener.tasks.push(body);
    } else {
      if (!listener.ears.events || !matches(listener.filter, body)) continue;
      listener.events.push(body);
    }
    pending += 1;
    weight += data.length;
  }
  if (frameAsked || pending === 0) return;
  frameAsked = true;
  // Frames of animation stand still in a page that is not seen.
  if (document.hidden) setTimeout(deliver, 200);
  else requestAnimationFrame(deliver);
}

function deliver() {
  frameAsked = false;
  for (const listener of [...listeners]) {
    const { events, tasks, ears } = listener;
    listener.events = [];
    listener.tasks = [];
    try {
      if (events.length) ears.events?.(events);
      if (tasks.length) ears.tasks?.(tasks);
    } catch (error) {
      // One that fails does not keep the others from hearing.
      reportError(error);
    }
  }
  pending = 0;
  weight = 0;
  const waiting = drained;
  drained = [];
  for (const go of waiting) go();
}

/** Tells those who wait for it that the connection is open. What became of tasks while there was none is not told
 * again: to those who listened before, that is a gap.
 * @param {boolean} anew */
function greet(anew) {
  for (const listener of [...listeners]) {
    if (listener.open && anew) listener.ears.gap?.("back");
    if (listener.open) continue;
    listener.open = true;
    listener.ears.open?.();
  }
}

/** @param {Gap} why */
function tell(why) {
  deliver();
  for (const listener of [...listeners]) {
    if (why === "behind") listener.open = false;
    listener.ears.gap?.(why);
  }
}

let counted = 0;
setInterval(() => {
  pulse.value = pulse.value * 0.4 + counted * 0.6;
  if (pulse.value < 0.05) pulse.value = 0;
  counted = 0;
}, 1000);

document.addEventListener("visibilitychange", () => {
  clearTimeout(leaving);
  if (document.hidden) {
    leaving = setTimeout(() => {
      left = true;
      settle();
    }, UNSEEN_MS);
    return;
  }
  if (!left) return reconnect();
  // What came meanwhile may be a lot, and how things stand now is what counts.
  left = false;
  settle();
  tell("behind");
});

token.subscribe(() => {
  asked = "";
  open?.abort();
  open = null;
  last = null;
  settle();
});
