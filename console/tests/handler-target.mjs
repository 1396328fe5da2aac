// The HTTP target of the handlers in tests. Specs can change its replies.

import { createServer } from "node:http";

/** A text that would run code if it were rendered as markup. */
export const HOSTILE_TEXT = `<img src=x onerror="window.stolen=1"><script>window.stolen=1</script>"'&amp;`;

/** @typedef {(body: any, headers: Record<string, any>) => {status?: number, headers?: Record<string, string>, body?: unknown} | Promise<any>} Reply */

export class HandlerTarget {
  constructor() {
    /** Requests that wait for `release`. */
    this.pendingReplies = [];
    /** @type {Record<string, Reply>} */
    this.replies = {
      bill: (_, headers) => ({ body: {
        log: ["billing", { message: "a word of warning", level: "error" }],
        emit: [{ type: "invoice.made", key: `invoice:${headers["ce-subject"]}`, value: { total: 12 } }],
        result: { paid: true },
      } }),
      mail: (_, headers) => ({ body: headers["ce-type"] === "invoice.made" ? { emit: [{ type: "mail.sent", value: { to: HOSTILE_TEXT } }] } : {} }),
      flaky: () => ({ status: 422, body: { log: [`no luck ${HOSTILE_TEXT}`] } }),
      patient: () => ({ status: 422, body: { log: ["not yet"] } }),
      strict: (body) => (body?.bad ? { status: 422, body: { log: ["it is bad"] } } : {}),
      slow: () => new Promise((resolve) => this.pendingReplies.push(() => resolve({ body: { log: ["released"] } }))),
      busy: () => ({ status: 503, headers: { "retry-after": "3600" } }),
      render: (body) => ({ body: { result: { ...body.value, rendered: true }, log: ["rendering"] } }),
      deploy: (body) => (body.value?.fail ? { status: 422, body: { log: ["the wire is cut"] } } : { body: { log: ["deployed"] } }),
      quick: () => ({}),
      shop: () => ({ body: { log: ["3 orders are new"] } }),
    };
  }

  /** Completes all waiting requests. */
  release() {
    for (const sendReply of this.pendingReplies.splice(0)) sendReply();
  }

  async start() {
    this.server = createServer(async (request, response) => {
      const chunks = [];
      for await (const chunk of request) chunks.push(chunk);
      const text = Buffer.concat(chunks).toString();
      const name = (request.url ?? "").slice(1);
      const body = text ? JSON.parse(text) : null;
      const reply = (await this.replies[name]?.(body, request.headers)) ?? {};
      if (response.destroyed) return;
      response.writeHead(reply.status ?? 200, { "content-type": "application/json", ...reply.headers });
      response.end(JSON.stringify(reply.body ?? {}));
    });
    await new Promise((resolve) => this.server.listen(0, "127.0.0.1", resolve));
    this.url = `http://127.0.0.1:${this.server.address().port}`;
  }

  stop() {
    this.release();
    this.server?.closeAllConnections();
    this.server?.close();
  }
}
