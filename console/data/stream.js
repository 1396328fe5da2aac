// The connection of the page to the stream, shared by all subscriptions.
//
//   server ─▶ connection ─▶ pending ─▶ one delivery per animation frame ─▶ subscriptions, each with its filter
//                 ▲             │
//                 └─ not read while too much is pending, so that memory stays bounded
//
// The connection is open while there are subscriptions and the page is visible. After a break it reconnects with
// `Last-Event-ID`, so that no event is missed; task changes can be missed, and subscriptions are notified to read again.

import { signal } from "../vendor/signals.js";
import { addQuery, parseExactJson, readProblem, sendRequest } from "./api.js";
import { sharedStreamParameters, filterMatchesTaskChange, filterMatchesEvent } from "./stream-filter.js";
import { Problem, errorText } from "./problem.js";
import { token } from "./session.js";
import { readSseFrames } from "./sse.js";

/** @typedef {import("./stream-filter.js").StreamFilter} StreamFilter */
/** @typedef {import("./api-types.js").JournalEvent} JournalEvent */
/** @typedef {import("./api-types.js").TaskChange} TaskChange */

/** Why a subscriber has to read again: events are missing (torn, behind), or task changes may be
 * (reconnected).
 * @typedef {"torn" | "behind" | "reconnected"} StreamGap */

/** `onOpen` is called when the stream is complete from then on: a snapshot read after it has no gap to the stream. It
 * is called again after `behind`.
 * @typedef {{onEvents?: (events: JournalEvent[]) => void, onTaskChanges?: (changes: TaskChange[]) => void,
 *   onGap?: (gap: StreamGap) => void, onOpen?: () => void}} StreamCallbacks */
/** @typedef {{filter: StreamFilter, callbacks: StreamCallbacks, events: JournalEvent[], taskChanges: TaskChange[], isOpen: boolean}} Subscription */

/** `open` once the server has responded; `waiting` until the next try; `refused` if a retry would not help. */
export const streamConnectionState = signal(
  /** @type {{phase: "off" | "connecting" | "open" | "waiting" | "refused", reason: string, tries: number, retryAt: number}} */ (
    { phase: "off", reason: "", tries: 0, retryAt: 0 }),
);

/** Events and task changes that arrived per second, smoothed. */
export const framesPerSecond = signal(0);

/** How many frames, and characters of frames, may be pending before the connection is not read for a while. */
const MAX_PENDING_FRAMES = 5000;
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
let pendingFrameCount = 0;
/** Pending characters: events may be large. */
let pendingCharCount = 0;
let isDeliveryScheduled = false;
/** @type {(() => void)[]} */
let drainWaiters = [];
/** @type {ReturnType<typeof setTimeout> | undefined} */
let hiddenDisconnectTimer;
/** The page has been hidden for longer than `HIDDEN_DISCONNECT_MS`. */
let disconnectedWhileHidden = false;
/** @type {(() => void) | null} */
let skipRetryDelay = null;

/** Subscribes to the stream. Returns the function that unsubscribes.
 * @param {StreamFilter} filter @param {StreamCallbacks} callbacks */
export function subscribe(filter, callbacks) {
  /** @type {Subscription} */
  const subscription = { filter, callbacks, events: [], taskChanges: [], isOpen: false };
  subscriptions.add(subscription);
  updateConnection();
  return () => {
    subscriptions.delete(subscription);
    pendingFrameCount -= subscription.events.length + subscription.taskChanges.length;
    updateConnection();
  };
}

/** Reconnects at once if a retry is pending. */
export function reconnectNow() {
  skipRetryDelay?.();
}

/** Opens, reopens or closes the connection for the current subscriptions. Runs once per microtask, since screens
 * change several subscriptions at once. */
function updateConnection() {
  queueMicrotask(() => {
    const isNeeded = subscriptions.size > 0 && token.value !== "" && !disconnectedWhileHidden;
    const url = isNeeded ? addQuery("/api/v1/stream", sharedStreamParameters([...subscriptions].map((subscription) => subscription.filter))) : "";
    if (url === connectedUrl) {
      if (streamConnectionState.value.phase === "open") notifySubscribersOfOpen(false);
      return;
    }
    connectedUrl = url;
    connectionAbort?.abort();
    connectionAbort = null;
    if (!isNeeded) {
      lastEventId = null;
      streamConnectionState.value = { phase: "off", reason: "", tries: 0, retryAt: 0 };
      return;
    }
    connectionAbort = new AbortController();
    keepConnected(url, connectionAbort.signal);
  });
}

/** Keeps a connection until it is aborted.
 * @param {string} url @param {AbortSignal} signal */
async function keepConnected(url, signal) {
  for (let tries = 0; !signal.aborted; tries += 1) {
    streamConnectionState.value = { ...streamConnectionState.value, phase: "connecting", tries };
    let reason;
    try {
      await readStreamConnection(url, signal, () => {
        tries = 0;
      });
      reason = "The server ended the stream.";
    } catch (error) {
      reason = errorText(error);
      if (error instanceof Problem && !error.isTransient && !signal.aborted) {
        streamConnectionState.value = { phase: "refused", reason, tries, retryAt: 0 };
        return;
      }
    }
    if (signal.aborted) return;
    const delayMs = tries === 0 ? 250 : Math.min(MAX_RETRY_DELAY_MS, 500 * 2 ** tries) * (0.75 + Math.random() / 2);
    streamConnectionState.value = { phase: "waiting", reason, tries, retryAt: Date.now() + delayMs };
    await /** @type {Promise<void>} */ (new Promise((resolve) => {
      skipRetryDelay = resolve;
      setTimeout(resolve, delayMs);
      signal.addEventListener("abort", () => resolve(), { once: true });
    }));
    skipRetryDelay = null;
  }
}

/** Reads one connection to its end.
 * @param {string} url @param {AbortSignal} signal @param {() => void} onResponse */
async function readStreamConnection(url, signal, onResponse) {
  /** @type {Record<string, string>} */
  const headers = lastEventId === null ? {} : { "last-event-id": lastEventId };
  const response = await sendRequest("GET", url, { headers: { ...headers, accept: "text/event-stream" }, signal });
  if (!response.ok) throw await readProblem(response);
  onResponse();
  streamConnectionState.value = { phase: "open", reason: "", tries: 0, retryAt: 0 };
  notifySubscribersOfOpen(true);
  let minLag = Infinity;
  for await (const frames of readSseFrames(response)) {
    if (signal.aborted) return;
    for (const { id, event, data } of frames) {
      // Events have an id, and their types are chosen by users; frames of the stream itself have no id.
      if (event === "Torn" && id === null) {
        lastEventId = String(JSON.parse(data).eventId);
        notifySubscribersOfGap("torn");
        return;
      }
      if (id !== null) lastEventId = id;
      if (data) queueFrame(event === "task" && id === null, data);
    }
    const lag = lastEventId === null ? 0 : Date.now() - Number(lastEventId) / 1000;
    // Clocks differ: the lag is compared with the smallest lag seen.
    minLag = Math.min(minLag, lag);
    if (pendingFrameCount <= MAX_PENDING_FRAMES && pendingCharCount <= MAX_PENDING_CHARS) continue;
    if (lag - minLag > MAX_LAG_MS) {
      lastEventId = null;
      notifySubscribersOfGap("behind");
      return;
    }
    await new Promise((resolve) => drainWaiters.push(() => resolve(undefined)));
  }
}

/** @param {boolean} isTaskChange otherwise it is an event @param {string} data */
function queueFrame(isTaskChange, data) {
  const body = parseExactJson(data);
  framesThisSecond += 1;
  for (const subscription of subscriptions) {
    if (isTaskChange) {
      if (!subscription.callbacks.onTaskChanges || !filterMatchesTaskChange(subscription.filter, body)) continue;
      subscription.taskChanges.push(body);
    } else {
      if (!subscription.callbacks.onEvents || !filterMatchesEvent(subscription.filter, body)) continue;
      subscription.events.push(body);
    }
    pendingFrameCount += 1;
    pendingCharCount += data.length;
  }
  if (isDeliveryScheduled || pendingFrameCount === 0) return;
  isDeliveryScheduled = true;
  // A hidden page has no animation frames.
  if (document.hidden) setTimeout(deliverPendingFrames, 200);
  else requestAnimationFrame(deliverPendingFrames);
}

/** Calls the callbacks of the subscriptions with their pending events and task changes. */
function deliverPendingFrames() {
  isDeliveryScheduled = false;
  for (const subscription of [...subscriptions]) {
    const { events, taskChanges, callbacks } = subscription;
    subscription.events = [];
    subscription.taskChanges = [];
    try {
      if (events.length) callbacks.onEvents?.(events);
      if (taskChanges.length) callbacks.onTaskChanges?.(taskChanges);
    } catch (error) {
      // A failing callback must not stop the others.
      reportError(error);
    }
  }
  pendingFrameCount = 0;
  pendingCharCount = 0;
  const waiters = drainWaiters;
  drainWaiters = [];
  for (const resume of waiters) resume();
}

/** Notifies new subscriptions that the connection is open, and older ones of a gap: task changes during the break are
 * not sent again.
 * @param {boolean} isNewConnection */
function notifySubscribersOfOpen(isNewConnection) {
  for (const subscription of [...subscriptions]) {
    if (subscription.isOpen && isNewConnection) subscription.callbacks.onGap?.("reconnected");
    if (subscription.isOpen) continue;
    subscription.isOpen = true;
    subscription.callbacks.onOpen?.();
  }
}

/** @param {StreamGap} gap */
function notifySubscribersOfGap(gap) {
  deliverPendingFrames();
  for (const subscription of [...subscriptions]) {
    if (gap === "behind") subscription.isOpen = false;
    subscription.callbacks.onGap?.(gap);
  }
}

let framesThisSecond = 0;
setInterval(() => {
  framesPerSecond.value = framesPerSecond.value * 0.4 + framesThisSecond * 0.6;
  if (framesPerSecond.value < 0.05) framesPerSecond.value = 0;
  framesThisSecond = 0;
}, 1000);

document.addEventListener("visibilitychange", () => {
  clearTimeout(hiddenDisconnectTimer);
  if (document.hidden) {
    hiddenDisconnectTimer = setTimeout(() => {
      disconnectedWhileHidden = true;
      updateConnection();
    }, HIDDEN_DISCONNECT_MS);
    return;
  }
  if (!disconnectedWhileHidden) return reconnectNow();
  // Many events may have arrived meanwhile: the current state is read instead.
  disconnectedWhileHidden = false;
  updateConnection();
  notifySubscribersOfGap("behind");
});

token.subscribe(() => {
  connectedUrl = "";
  connectionAbort?.abort();
  connectionAbort = null;
  lastEventId = null;
  updateConnection();
});
