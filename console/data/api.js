// The public API. Whatever the console shows or does goes through here.

import { Problem } from "./problem.js";
import { signOut, token } from "./session.js";

/** @typedef {Record<string, string | number | boolean | null | undefined>} Query */
/** @typedef {{query?: Query, signal?: AbortSignal, exact?: boolean, as?: string, body?: unknown}} Options */

/** An address of the API. What is null or empty is left out of the query.
 * @param {string} path @param {Query} [query] */
export function address(path, query = {}) {
  const given = Object.entries(query).filter(([, value]) => value !== null && value !== undefined && value !== "");
  const text = new URLSearchParams(given.map(([name, value]) => [name, String(value)])).toString();
  return text ? `${path}?${text}` : path;
}

/** A name as one segment of a path.
 * @param {string | number} name */
export function segment(name) {
  return encodeURIComponent(String(name));
}

/** A path of an order or a chain, as it is written behind `/api/v1/orders/` and `/api/v1/chains/`.
 * @param {string} path */
export function below(path) {
  return path.replace(/^\//, "").split("/").map(encodeURIComponent).join("/").replaceAll("%2C", ",");
}

/** What comes of a request. Where it breaks off, that is its caller's own doing, or the server does not answer.
 * @template T @param {AbortSignal | undefined} signal @param {Promise<T>} awaited */
const unbroken = (signal, awaited) => awaited.catch((error) => {
  throw signal?.aborted ? error : new Problem({ status: 0 });
});

/** Something between answers in the server's place. */
export const nonsense = () => new Problem({ status: 502, detail: "The server sent an invalid response" });

/** Sends a request with the token. Answers whatever came, or throws a Problem if nothing did. A token that is no longer
 * taken signs its owner out, and nobody who has signed in meanwhile.
 * @param {string} method @param {string} path
 * @param {{headers?: Record<string, string>, body?: unknown, signal?: AbortSignal, as?: string}} [more]
 *   `as` is the token; without it, the one that is signed in */
export async function send(method, path, { headers = {}, body, signal, as } = {}) {
  /** @type {Record<string, string>} */
  const json = body === undefined ? {} : { "content-type": "application/json" };
  const used = as ?? token.value;
  const response = await unbroken(signal, fetch(path, {
    method,
    headers: { authorization: `Bearer ${used}`, accept: "application/json", ...json, ...headers },
    body: body === undefined ? undefined : body instanceof Written ? body.text : JSON.stringify(body),
    signal,
    credentials: "omit",
    cache: "no-store",
    redirect: "error",
  }));
  if (response.status === 401 && used === token.value) signOut("The token is no longer accepted. Sign in with another.");
  return response;
}

/** What a response that is no 2xx says. @param {Response} response */
export async function problem(response) {
  const told = await response.json().catch(() => ({}));
  return new Problem({ ...told, status: response.status });
}

/** @param {string} method @param {string} path @param {unknown} body @param {Options} options
 * @returns {Promise<any>} */
async function call(method, path, body, { query, signal, exact = false, as }) {
  const response = await send(method, address(path, query), { body, signal, as });
  if (!response.ok) throw await problem(response);
  const text = await unbroken(signal, response.text());
  if (!/json/.test(response.headers.get("content-type") ?? "")) return text;
  try {
    return exact ? exactly(text) : JSON.parse(text);
  } catch {
    throw nonsense();
  }
}

/** A number that a JavaScript number cannot hold, by its digits. */
export class Digits {
  /** @param {string} text */
  constructor(text) {
    this.text = text;
  }
}

/** JSON that is sent as it is written: what people have typed keeps its digits. */
export class Written {
  /** @param {string} text */
  constructor(text) {
    this.text = text;
  }
}

/** JSON whose numbers keep their digits, where there are more of them than this language reads.
 * @param {string} text
 * @returns {any} */
export function exactly(text) {
  // To look at every value takes its time, and few texts have such numbers.
  return /[\d.]{17}|9\d{15}/.test(text) ? JSON.parse(text, keepDigits) : JSON.parse(text);
}

/** @param {string} _ @param {unknown} value @param {{source?: string}} [context] */
function keepDigits(_, value, context) {
  const source = context?.source;
  if (typeof value !== "number" || source === undefined || String(value) === source) return value;
  return source.replace(/e.*|\D/gi, "").length > 15 ? new Digits(source) : value;
}

/** The calls, each answering with the JSON that came or throwing a Problem. */
export const api = {
  /** @param {string} path @param {Options} [options] */
  get: (path, options = {}) => call("GET", path, undefined, options),
  /** @param {string} path @param {unknown} [body] @param {Options} [options] */
  post: (path, body, options = {}) => call("POST", path, body, options),
  /** @param {string} path @param {unknown} [body] @param {Options} [options] */
  put: (path, body, options = {}) => call("PUT", path, body, options),
  /** @param {string} path @param {Options} [options] */
  delete: (path, options = {}) => call("DELETE", path, options.body, options),
};
