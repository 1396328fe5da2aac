// Where the HTTP handlers of the tests go. What they answer can be changed while they run.

import { createServer } from "node:http";

/** Words that would do harm if anybody took them for markup. */
export const EVIL = `<img src=x onerror="window.stolen=1"><script>window.stolen=1</script>"'&amp;`;

/** @typedef {(body: any, headers: Record<string, any>) => {status?: number, headers?: Record<string, string>, body?: unknown} | Promise<any>} Reply */

export class Target {
  constructor() {
    /** Those that wait to be let go. */
    this.waiting = [];
    /** @type {Record<string, Reply>} */
    this.replies = {
      bill: (_, headers) => ({ body: {
        log: ["billing", { message: "a word of warning", level: "error" }],
        emit: [{ type: "invoice.made", key: `invoice:${headers["ce-subject"]}`, value: { total: 12 } }],
        result: { paid: true },
      } }),
      mail: (_, headers) => ({ body: headers["ce-type"] === "invoice.made" ? { emit: [{ type: "mail.sent", value: { to: EVIL } }] } : {} }),
      flaky: () => ({ status: 422, body: { log: [`no luck ${EVIL}`] } }),
      patient: () => ({ status: 422, body: { log: ["not yet"] } }),
      strict: (body) => (body?.bad ? { status: 422, body: { log: ["it is bad"] } } : {}),
      slow: () => new Promise((resolve) => this.waiting.push(() => resolve({ body: { log: ["let go"] } }))),
      busy: () => ({ status: 503, headers: { "retry-after": "3600" } }),
      render: (body) => ({ body: { result: { ...body.value, rendered: true }, log: ["rendering"] } }),
      deploy: (body) => (body.value?.fail ? { status: 422, body: { log: ["the wire is cut"] } } : { body: { log: ["deployed"] } }),
      quick: () => ({}),
      shop: () => ({ body: { log: ["3 orders are new"] } }),
    };
  }

  /** Lets all end that wait. */
  release() {
    for (const go of this.waiting.splice(0)) go();
  }

  async start() {
    this.server = createServer(async (request, response) => {
      const pieces = [];
      for await (const piece of request) pieces.push(piece);
      const text = Buffer.concat(pieces).toString();
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
