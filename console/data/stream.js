// The one connection of a page to the stream, and all who listen to it.
//
//   server ─▶ connection ─▶ pending ─▶ one delivery an animation frame ─▶ listeners, each by its filter
//                 ▲             │
//                 └─ not read while too much is pending, so that memory stays bounded
//
// It is opened while somebody listens and the page can be seen. When it breaks it comes back with `Last-Event-ID`, so
// that no event is missed; changes of tasks are, and listeners are told to look again.

import { signal } from "../vendor/signals.js";
import { buildUrl, parseExactJson, readProblem, sendRequest } from "./api.js";
import { sharedParameters, matchesTaskChange, matchesEvent } from "./filter.js";
import { Problem, errorText } from "./problem.js";
import { token } from "./session.js";
import { readFrames } from "./sse.js";

/** @typedef {import("./filter.js").StreamFilter} StreamFilter */
/** @typedef {import("./filter.js").JournalEvent} JournalEvent */
/** @typedef {import("./filter.js").TaskChange} TaskChange */

/** Why a listener has to read its state anew: events are missing, or only changes of tasks may be.
 * @typedef {"torn" | "behind" | "back"} StreamGap */

/** `open` is called when nothing will be missed from then on: what is read after it is complete together with what is
 * heard. After `behind` it is called again.
 * @typedef {{events?: (list: JournalEvent[]) => void, tasks?: (list: TaskChange[]) => void, gap?: (why: StreamGap) => void, open?: () => void}} StreamCallbacks */
/** @typedef {{filter: StreamFilter, ears: StreamCallbacks, events: JournalEvent[], tasks: TaskChange[], open: boolean}} Subscription */

/** `open` once the server has answered; `waiting` until it is tried again; `refused` if that would not help. */
export const connection = signal(
  /** @type {{phase: "off" | "connecting" | "open" | "waiting" | "refused", why: string, tries: number, retryAt: number}} */ (
    { phase: "off", why: "", tries: 0, retryAt: 0 }),
);

/** Events a second, as they came lately. */
export const eventRate = signal(0);

/** How many frames, and characters of them, may wait for a delivery before reading pauses. */
const MAX_PENDING = 5000;
const MAX_PENDING_CHARS = 20_000_000;
/** How far the page may fall behind before it leaves out what lies between. */
const MAX_LAG_MS = 10_000;
/** How long a page that nobody sees keeps its connection: browsers have few for each server. */
const HIDDEN_DISCONNECT_MS = 20_000;
const MAX_RETRY_DELAY_MS = 15_000;

/** @type {Set<Subscription>} */
const subscriptions = new Set();
/** @type {AbortController | null} */
let connectionAbort = null;
/** The last id that was read. @type {string | null} */
let lastEventId = null;
let connectedUrl = "";
let pending = 0;
/** The same in characters: events may be large. */
let pendingChars = 0;
let deliveryScheduled = false;
/** @type {(() => void)[]} */
let drainWaiters = [];
/** @type {ReturnType<typeof setTimeout> | undefined} */
let hiddenTimer;
/** Nobody has looked for a while. */
let disconnectedWhileHidden = false;
/** @type {(() => void) | null} */
let retryNow = null;

/** Listens until the answer is called.
 * @param {StreamFilter} filter @param {StreamCallbacks} ears */
export function subscribe(filter, ears) {
  /** @type {Subscription} */
  const listener = { filter, ears, events: [], tasks: [], open: false };
  subscriptions.add(listener);
  updateConnection();
  return () => {
    subscriptions.delete(listener);
    pending -= listener.events.length + listener.tasks.length;
    updateConnection();
  };
}

/** Tries again at once if it waits to. */
export function reconnect() {
  retryNow?.();
}

/** Opens, reopens or closes the connection as the listeners need it. Screens change many listeners at once: the last
 * state of them counts. */
function updateConnection() {
  queueMicrotask(() => {
    const wanted = subscriptions.size > 0 && token.value !== "" && !disconnectedWhileHidden;
    const query = wanted ? buildUrl("/api/v1/stream", sharedParameters([...subscriptions].map((listener) => listener.filter))) : "";
    if (query === connectedUrl) {
      if (connection.value.phase === "open") notifyOpen(false);
      return;
    }
    connectedUrl = query;
    connectionAbort?.abort();
    connectionAbort = null;
    if (!wanted) {
      lastEventId = null;
      connection.value = { phase: "off", why: "", tries: 0, retryAt: 0 };
      return;
    }
    connectionAbort = new AbortController();
    keepConnected(query, connectionAbort.signal);
  });
}

/** Keeps a connection until it is aborted.
 * @param {string} query @param {AbortSignal} signal */
async function keepConnected(query, signal) {
  for (let tries = 0; !signal.aborted; tries += 1) {
    connection.value = { ...connection.value, phase: "connecting", tries };
    let why;
    try {
      await readConnection(query, signal, () => {
        tries = 0;
      });
      why = "The server ended the stream.";
    } catch (error) {
      why = errorText(error);
      if (error instanceof Problem && !error.passing && !signal.aborted) {
        connection.value = { phase: "refused", why, tries, retryAt: 0 };
        return;
      }
    }
    if (signal.aborted) return;
    const wait = tries === 0 ? 250 : Math.min(MAX_RETRY_DELAY_MS, 500 * 2 ** tries) * (0.75 + Math.random() / 2);
    connection.value = { phase: "waiting", why, tries, retryAt: Date.now() + wait };
    await /** @type {Promise<void>} */ (new Promise((resolve) => {
      retryNow = resolve;
      setTimeout(resolve, wait);
      signal.addEventListener("abort", () => resolve(), { once: true });
    }));
    retryNow = null;
  }
}

/** Reads one connection to its end.
 * @param {string} query @param {AbortSignal} signal @param {() => void} opened */
async function readConnection(query, signal, opened) {
  /** @type {Record<string, string>} */
  const headers = lastEventId === null ? {} : { "last-event-id": lastEventId };
  const response = await sendRequest("GET", query, { headers: { ...headers, accept: "text/event-stream" }, signal });
  if (!response.ok) throw await readProblem(response);
  opened();
  connection.value = { phase: "open", why: "", tries: 0, retryAt: 0 };
  notifyOpen(true);
  let least = Infinity;
  for await (const list of readFrames(response)) {
    if (signal.aborted) return;
    for (const { id, event, data } of list) {
      // Events have an id, and types that users choose: what the stream tells of itself has none.
      if (event === "Torn" && id === null) {
        lastEventId = String(JSON.parse(data).eventId);
        notifyGap("torn");
        return;
      }
      if (id !== null) lastEventId = id;
      if (data) queueFrame(event === "task" && id === null, data);
    }
    const away = lastEventId === null ? 0 : Date.now() - Number(lastEventId) / 1000;
    // Clocks differ: what counts is how much later than usual events come.
    least = Math.min(least, away);
    if (pending <= MAX_PENDING && pendingChars <= MAX_PENDING_CHARS) continue;
    if (away - least > MAX_LAG_MS) {
      lastEventId = null;
      notifyGap("behind");
      return;
    }
    await new Promise((resolve) => drainWaiters.push(() => resolve(undefined)));
  }
}

/** @param {boolean} change whether it is one of a task @param {string} data */
function queueFrame(change, data) {
  const body = parseExactJson(data);
  eventsThisSecond += 1;
  for (const listener of subscriptions) {
    if (change) {
      if (!listener.ears.tasks || !matchesTaskChange(listener.filter, body)) continue;
      listener.tasks.push(body);
    } else {
      if (!listener.ears.events || !matchesEvent(listener.filter, body)) continue;
      listener.events.push(body);
    }
    pending += 1;
    pendingChars += data.length;
  }
  if (deliveryScheduled || pending === 0) return;
  deliveryScheduled = true;
  // Frames of animation stand still in a page that is not seen.
  if (document.hidden) setTimeout(deliverPending, 200);
  else requestAnimationFrame(deliverPending);
}

function deliverPending() {
  deliveryScheduled = false;
  for (const listener of [...subscriptions]) {
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
  pendingChars = 0;
  const waiting = drainWaiters;
  drainWaiters = [];
  for (const go of waiting) go();
}

/** Tells those who wait for it that the connection is open. What became of tasks while there was none is not told
 * again: to those who listened before, that is a gap.
 * @param {boolean} anew */
function notifyOpen(anew) {
  for (const listener of [...subscriptions]) {
    if (listener.open && anew) listener.ears.gap?.("back");
    if (listener.open) continue;
    listener.open = true;
    listener.ears.open?.();
  }
}

/** @param {StreamGap} why */
function notifyGap(why) {
  deliverPending();
  for (const listener of [...subscriptions]) {
    if (why === "behind") listener.open = false;
    listener.ears.gap?.(why);
  }
}

let eventsThisSecond = 0;
setInterval(() => {
  eventRate.value = eventRate.value * 0.4 + eventsThisSecond * 0.6;
  if (eventRate.value < 0.05) eventRate.value = 0;
  eventsThisSecond = 0;
}, 1000);

document.addEventListener("visibilitychange", () => {
  clearTimeout(hiddenTimer);
  if (document.hidden) {
    hiddenTimer = setTimeout(() => {
      disconnectedWhileHidden = true;
      updateConnection();
    }, HIDDEN_DISCONNECT_MS);
    return;
  }
  if (!disconnectedWhileHidden) return reconnect();
  // What came meanwhile may be a lot, and how things stand now is what counts.
  disconnectedWhileHidden = false;
  updateConnection();
  notifyGap("behind");
});

token.subscribe(() => {
  connectedUrl = "";
  connectionAbort?.abort();
  connectionAbort = null;
  lastEventId = null;
  updateConnection();
});
