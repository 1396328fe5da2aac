// What went wrong, as a sentence that says what to do.

/** What the server answers when it does not grant a request.
 * @typedef {{type?: string, title?: string, status: number, detail?: string, parameter?: string, pointer?: string}} ProblemBody */

export class Problem extends Error {
  /** @param {ProblemBody} answer */
  constructor(answer) {
    super(problemText(answer));
    this.name = "Problem";
    /** 0 if there was no answer at all. */
    this.status = answer.status;
    this.answer = answer;
  }

  /** Whether the same request may go well a little later. */
  get passing() {
    return [0, 408, 429].includes(this.status) || this.status >= 500;
  }
}

/** @param {ProblemBody} answer */
function problemText({ status, title, detail, parameter, pointer }) {
  const place = pointer ? ` (at ${pointer})` : parameter ? ` (${parameter})` : "";
  const what = detail || title;
  if (status === 0) return "The server does not respond. The console keeps trying.";
  if (status === 401) return "The token is not accepted. Sign in again.";
  if (!what) return `The server responded with status ${status} and gave no reason.`;
  const text = what.charAt(0).toUpperCase() + what.slice(1) + place;
  return /[.!?…]$/.test(text) ? text : `${text}.`;
}

/** Any failure as a sentence.
 * @param {unknown} error */
export function errorText(error) {
  return error instanceof Error ? error.message : String(error);
}
