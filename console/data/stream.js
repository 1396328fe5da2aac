// The connection of the page to the stream, shared by all subscriptions.
//
//   server ─▶ connection ─▶ pending ─▶ one delivery per animation frame ─▶ subscriptions, each with its filter
//                 ▲             │
//                 └─ not read while too much is pending, so that memory stays bounded
//
// It is open while there are subscriptions and the page is visible. After a break it reconnects with `Last-Event-ID`,
// so that no event is missed; changes of tasks can be missed, and subscriptions are notified to read again.

import { signal } from "../vendor/signals.js";
import { buildUrl, parseExactJson, readProblem, sendRequest } from "./api.js";
import { sharedParameters, matchesTaskChange, matchesEvent } from "./filter.js";
import { Problem, errorText } from "./problem.js";
import { token } from "./session.js";
import { readFrames } from "./sse.js";

/** @typedef {import("./filter.js").StreamFilter} StreamFilter */
/** @typedef {import("./filter.js").JournalEvent} JournalEvent */
/** @typedef {import("./filter.js").TaskChange} TaskChange */

/** Why a subscriber has to read again: events are missing (torn, behind), or changes of tasks may be (back).
 * @typedef {"torn" | "behind" | "back"} StreamGap */

/** `open` is called when the stream is complete from then on: a snapshot read after it has no gap to the stream. It
 * is called again after `behind`.
 * @typedef {{events?: (list: JournalEvent[]) => void, tasks?: (list: TaskChange[]) => void, gap?: (why: StreamGap) => void, open?: () => void}} StreamCallbacks */
/** @typedef {{filter: StreamFilter, callbacks: StreamCallbacks, events: JournalEvent[], tasks: TaskChange[], open: boolean}} Subscription */

/** `open` once the server has responded; `waiting` until the next try; `refused` if a retry would not help. */
export const connection = signal(
  /** @type {{phase: "off" | "connecting" | "open" | "waiting" | "refused", why: string, tries: number, retryAt: number}} */ (
    { phase: "off", why: "", tries: 0, retryAt: 0 }),
);

/** Recent events per second. */
export const eventRate = signal(0);

/** How many frames, and characters, may be pending before reading pauses. */
const MAX_PENDING = 5000;
const MAX_PENDING_CHARS = 20_000_000;
/** How far the page may fall behind before it skips events. */
const MAX_LAG_MS = 10_000;
/** How long a hidden page keeps its connection: browsers allow few per server. */
const HIDDEN_DISCONNECT_MS = 20_000;
const MAX_RETRY_DELAY_MS = 15_000;

/** @type {Set<Subscription>} */
const subscriptions = new Set();
/** @type {AbortController | null} */
let connectionAbort = null;
/** The id of the last event read. @type {string | null} */
let lastEventId = null;
let connectedUrl = "";
let pending = 0;
/** Pending characters: events may be large. */
let pendingChars = 0;
let deliveryScheduled = false;
/** @type {(() => void)[]} */
let drainWaiters = [];
/** @type {ReturnType<typeof setTimeout> | undefined} */
let hiddenTimer;
/** The page has been hidden for longer than `HIDDEN_DISCONNECT_MS`. */
let disconnectedWhileHidden = false;
/** @type {(() => void) | null} */
let retryNow = null;

/** Subscribes to the stream. Returns the function that unsubscribes.
 * @param {StreamFilter} filter @param {StreamCallbacks} callbacks */
export function subscribe(filter, callbacks) {
  /** @type {Subscription} */
  const subscription = { filter, callbacks, events: [], tasks: [], open: false };
  subscriptions.add(subscription);
  updateConnection();
  return () => {
    subscriptions.delete(subscription);
    pending -= subscription.events.length + subscription.tasks.length;
    updateConnection();
  };
}

/** Reconnects at once if a retry is pending. */
export function reconnect() {
  retryNow?.();
}

/** Opens, reopens or closes the connection for the current subscriptions. Runs once per microtask, since screens
 * change several subscriptions at once. */
function updateConnection() {
  queueMicrotask(() => {
    const isNeeded = subscriptions.size > 0 && token.value !== "" && !disconnectedWhileHidden;
    const query = isNeeded ? buildUrl("/api/v1/stream", sharedParameters([...subscriptions].map((subscription) => subscription.filter))) : "";
    if (query === connectedUrl) {
      if (connection.value.phase === "open") notifyOpen(false);
      return;
    }
    connectedUrl = query;
    connectionAbort?.abort();
    connectionAbort = null;
    if (!isNeeded) {
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
      if (error instanceof Problem && !error.isTransient && !signal.aborted) {
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
  let minLag = Infinity;
  for await (const list of readFrames(response)) {
    if (signal.aborted) return;
    for (const { id, event, data } of list) {
      // Events have an id, and their types are chosen by users; frames of the stream itself have no id.
      if (event === "Torn" && id === null) {
        lastEventId = String(JSON.parse(data).eventId);
        notifyGap("torn");
        return;
      }
      if (id !== null) lastEventId = id;
      if (data) queueFrame(event === "task" && id === null, data);
    }
    const lag = lastEventId === null ? 0 : Date.now() - Number(lastEventId) / 1000;
    // Clocks differ: the lag is compared with the smallest lag seen.
    minLag = Math.min(minLag, lag);
    if (pending <= MAX_PENDING && pendingChars <= MAX_PENDING_CHARS) continue;
    if (lag - minLag > MAX_LAG_MS) {
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
  for (const subscription of subscriptions) {
    if (change) {
      if (!subscription.callbacks.tasks || !matchesTaskChange(subscription.filter, body)) continue;
      subscription.tasks.push(body);
    } else {
      if (!subscription.callbacks.events || !matchesEvent(subscription.filter, body)) continue;
      subscription.events.push(body);
    }
    pending += 1;
    pendingChars += data.length;
  }
  if (deliveryScheduled || pending === 0) return;
  deliveryScheduled = true;
  // A hidden page has no animation frames.
  if (document.hidden) setTimeout(deliverPending, 200);
  else requestAnimationFrame(deliverPending);
}

function deliverPending() {
  deliveryScheduled = false;
  for (const subscription of [...subscriptions]) {
    const { events, tasks, callbacks } = subscription;
    subscription.events = [];
    subscription.tasks = [];
    try {
      if (events.length) callbacks.events?.(events);
      if (tasks.length) callbacks.tasks?.(tasks);
    } catch (error) {
      // A failing callback must not stop the others.
      reportError(error);
    }
  }
  pending = 0;
  pendingChars = 0;
  const waiting = drainWaiters;
  drainWaiters = [];
  for (const resume of waiting) resume();
}

/** Notifies new subscriptions that the connection is open, and older ones of a gap: changes of tasks during the break
 * are not sent again.
 * @param {boolean} isNewConnection */
function notifyOpen(isNewConnection) {
  for (const subscription of [...subscriptions]) {
    if (subscription.open && isNewConnection) subscription.callbacks.gap?.("back");
    if (subscription.open) continue;
    subscription.open = true;
    subscription.callbacks.open?.();
  }
}

/** @param {StreamGap} gap */
function notifyGap(gap) {
  deliverPending();
  for (const subscription of [...subscriptions]) {
    if (gap === "behind") subscription.open = false;
    subscription.callbacks.gap?.(gap);
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
  // Many events may have arrived meanwhile: the current state is read instead.
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
