// Errors as sentences for people.

/** Problem body of an error response (RFC 9457).
 * @typedef {{type?: string, title?: string, status: number, detail?: string, parameter?: string, pointer?: string}}
 * ProblemBody */

export class Problem extends Error {
  /** @param {ProblemBody} body */
  constructor(body) {
    super(problemText(body));
    this.name = "Problem";
    /** 0 if there was no response. */
    this.status = body.status;
    this.body = body;
  }

  /** Whether the same request may succeed later. */
  get isTransient() {
    return [0, 408, 429].includes(this.status) || this.status >= 500;
  }
}

/** @param {ProblemBody} body */
function problemText({ status, title, detail, parameter, pointer }) {
  const location = pointer ? ` (at ${pointer})` : parameter ? ` (${parameter})` : "";
  const summary = detail || title;
  if (status === 0) return "The server does not respond. The console keeps trying.";
  if (status === 401) return "The token is not accepted. Sign in again.";
  if (!summary) return `The server responded with status ${status} and gave no reason.`;
  const text = summary.charAt(0).toUpperCase() + summary.slice(1) + location;
  return /[.!?…]$/.test(text) ? text : `${text}.`;
}

/** The text of any error.
 * @param {unknown} error */
export function errorText(error) {
  return error instanceof Error ? error.message : String(error);
}
