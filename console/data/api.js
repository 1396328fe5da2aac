// Client of the public API. Every read and every action of the console uses it.

import { Problem } from "./problem.js";
import { signOutBecauseTokenRefused, token } from "./session.js";

/** @typedef {Record<string, string | number | boolean | null | undefined>} UrlQuery */
/** @typedef {{query?: UrlQuery, signal?: AbortSignal, exactNumbers?: boolean, tokenOverride?: string, body?: unknown}} RequestOptions */

/** Adds a query to a path of the API or the address of a screen. Null and empty values are left out.
 * @param {string} path @param {UrlQuery} [query] */
export function addQuery(path, query = {}) {
  const presentEntries = Object.entries(query).filter(([, value]) => value !== null && value !== undefined && value !== "");
  const text = new URLSearchParams(presentEntries.map(([name, value]) => [name, String(value)])).toString();
  return text ? `${path}?${text}` : path;
}

/** Encodes a name as one segment of a path.
 * @param {string | number} name */
export function encodeSegment(name) {
  return encodeURIComponent(String(name));
}

/** Encodes the path of an order or a chain for `/api/v1/orders/…` and `/api/v1/chains/…`.
 * @param {string} path */
export function encodeOrderOrChainPath(path) {
  return path.replace(/^\//, "").split("/").map(encodeURIComponent).join("/").replaceAll("%2C", ",");
}

/** Rejects with a Problem when the server cannot be reached. An abort by the caller is rethrown unchanged.
 * @template T @param {AbortSignal | undefined} signal @param {Promise<T>} promise */
const convertRejectionToProblem = (signal, promise) => promise.catch((error) => {
  throw signal?.aborted ? error : new Problem({ status: 0 });
});

/** The problem of a response that is not JSON of the server: a proxy may have sent it. */
export const invalidResponseProblem = () => new Problem({ status: 502, detail: "The server sent an invalid response" });

/** Sends a request with the token. Resolves to the response, or throws a Problem if there is none. A 401 signs out,
 * unless another token was signed in meanwhile.
 * @param {string} method @param {string} path
 * @param {{headers?: Record<string, string>, body?: unknown, signal?: AbortSignal, tokenOverride?: string}} [options]
 *   without `tokenOverride`, the signed-in token is sent */
export async function sendRequest(method, path, { headers = {}, body, signal, tokenOverride } = {}) {
  /** @type {Record<string, string>} */
  const contentType = body === undefined ? {} : { "content-type": "application/json" };
  const sentToken = tokenOverride ?? token.value;
  const response = await convertRejectionToProblem(signal, fetch(path, {
    method,
    headers: { authorization: `Bearer ${sentToken}`, accept: "application/json", ...contentType, ...headers },
    body: body === undefined ? undefined : body instanceof RawJson ? body.text : JSON.stringify(body),
    signal,
    credentials: "omit",
    cache: "no-store",
    redirect: "error",
  }));
  if (response.status === 401 && sentToken === token.value) signOutBecauseTokenRefused();
  return response;
}

/** Reads the problem body of an error response. @param {Response} response */
export async function readProblem(response) {
  const body = await response.json().catch(() => ({}));
  return new Problem({ ...body, status: response.status });
}

/** @param {string} method @param {string} path @param {unknown} body @param {RequestOptions} options
 * @returns {Promise<any>} */
async function requestJson(method, path, body, { query, signal, exactNumbers = false, tokenOverride }) {
  const response = await sendRequest(method, addQuery(path, query), { body, signal, tokenOverride });
  if (!response.ok) throw await readProblem(response);
  const text = await convertRejectionToProblem(signal, response.text());
  if (!/json/.test(response.headers.get("content-type") ?? "")) return text;
  try {
    return exactNumbers ? parseExactJson(text) : JSON.parse(text);
  } catch {
    throw invalidResponseProblem();
  }
}

/** A number with more digits than a JavaScript number can hold. */
export class ExactNumber {
  /** @param {string} text */
  constructor(text) {
    this.text = text;
  }
}

/** JSON text that is sent unchanged, so that typed numbers keep their digits. */
export class RawJson {
  /** @param {string} text */
  constructor(text) {
    this.text = text;
  }
}

/** Parses JSON and keeps long numbers as `ExactNumber`.
 * @param {string} text
 * @returns {any} */
export function parseExactJson(text) {
  // A reviver is slow, and few texts have such numbers.
  return /[\d.]{17}|9\d{15}/.test(text) ? JSON.parse(text, reviveExactNumber) : JSON.parse(text);
}

/** @param {string} _ @param {unknown} value @param {{source?: string}} [context] */
function reviveExactNumber(_, value, context) {
  const source = context?.source;
  if (typeof value !== "number" || source === undefined || String(value) === source) return value;
  return source.replace(/e.*|\D/gi, "").length > 15 ? new ExactNumber(source) : value;
}

/** API calls. Each resolves to the JSON of the response or throws a Problem. */
export const api = {
  /** @param {string} path @param {RequestOptions} [options] */
  get: (path, options = {}) => requestJson("GET", path, undefined, options),
  /** @param {string} path @param {unknown} [body] @param {RequestOptions} [options] */
  post: (path, body, options = {}) => requestJson("POST", path, body, options),
  /** @param {string} path @param {unknown} [body] @param {RequestOptions} [options] */
  put: (path, body, options = {}) => requestJson("PUT", path, body, options),
  /** @param {string} path @param {RequestOptions} [options] */
  delete: (path, options = {}) => requestJson("DELETE", path, options.body, options),
};
