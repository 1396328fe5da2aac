// The server of a spec: the real binary in a folder of its own, set up as world.yml says, with data that
// came in through its API. That of the pictures has another set-up, and data of its own.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:net";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { EVIL, Target } from "./target.mjs";

export { EVIL };

const here = dirname(fileURLToPath(import.meta.url));
const ROLES = ["admin", "operator", "viewer", "producer", "worker", "shop"];
/** How long anything may take that does not hang. */
export const HANGS = 20_000;

class World {
  store = "sqlite:world.db";

  /** @param {string} binary @param {string} [setup] @param {(world: World) => Promise<void>} [bring] */
  async start(binary, setup = "world.yml", bring = fill) {
    this.binary = binary;
    this.setup = setup;
    this.target = new Target();
    await this.target.start();
    this.folder = mkdtempSync(join(tmpdir(), "pointsman-console-"));
    this.tokens = Object.fromEntries(ROLES.map((role) => [role, `pm_test_${role}_${"x".repeat(32)}`]));
    this.port = await freePort();
    this.url = `http://127.0.0.1:${this.port}`;
    this.configure();
    await this.up();
    await bring(this);
  }

  /** Writes the configuration, changed if that is wished. It is taken up within a moment.
   * @param {(yaml: string) => string} [change] */
  configure(change = (yaml) => yaml) {
    const yaml = readFileSync(join(here, this.setup), "utf8").replaceAll("TARGET", this.target.url);
    const own = `store: ${this.store}\nserver: {listen: "127.0.0.1:${this.port}", drain: 1s}\n`;
    writeFileSync(join(this.folder, "pointsman.yml"), own + change(yaml));
  }

  async up() {
    const env = { PATH: process.env.PATH, HOME: this.folder };
    for (const role of ROLES) env[`TOKEN_${role.toUpperCase()}`] = this.tokens[role];
    this.process = spawn(this.binary, ["serve", "--config", "pointsman.yml"], { cwd: this.folder, env, stdio: ["ignore", "ignore", "pipe"] });
    this.running = true;
    let said = "";
    this.process.stderr.setEncoding("utf8").on("data", (text) => {
      said = (said + text).slice(-8000);
    });
    const died = once(this.process, "exit").then(([code]) => {
      this.running = false;
      if (!this.stopping) throw new Error(`the server ended with ${code}:\n${said}`);
    });
    died.catch(() => {});
    await Promise.race([died, this.until("/readyz", (answer) => answer.status === "ok")]);
  }

  /** Ends the server. @param {NodeJS.Signals} [signal] */
  async down(signal = "SIGTERM") {
    this.stopping = true;
    this.target.release();
    const ended = once(this.process, "exit");
    this.process.kill(signal);
    await ended;
    this.stopping = false;
  }

  async stop() {
    if (this.running) await this.down("SIGKILL");
    this.target?.stop();
    if (this.folder) rmSync(this.folder, { recursive: true, force: true });
  }

  /** @param {string} method @param {string} path @param {unknown} [body] @param {string} [role] */
  async call(method, path, body, role = "admin") {
    const headers = { authorization: `Bearer ${this.tokens[role]}` };
    if (body !== undefined) headers["content-type"] = "application/json";
    const response = await fetch(this.url + path, { method, headers, body: body === undefined ? undefined : JSON.stringify(body) });
    const text = await response.text();
    const answer = text.startsWith("{") ? JSON.parse(text) : text;
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`);
    return answer;
  }

  get(path, role) { return this.call("GET", path, undefined, role); }
  post(path, body, role) { return this.call("POST", path, body, role); }
  put(path, body, role) { return this.call("PUT", path, body, role); }
  delete(path, role) { return this.call("DELETE", path, undefined, role); }

  /** Emits events, and answers what the server did.
   * @param {object | object[]} events */
  emit(events) { return this.post("/api/v1/events", events); }

  /** Asks until the answer is as wished. @param {string} path @param {(answer: any) => boolean} wished */
  async until(path, wished, role) {
    const end = Date.now() + HANGS;
    let last;
    while (Date.now() < end) {
      try {
        last = await this.get(path, role);
        if (wished(last)) return last;
      } catch (error) {
        last = error;
      }
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    throw new Error(`${path} is never as wished; in the end it was ${last instanceof Error ? last.message : JSON.stringify(last).slice(0, 1000)}`);
  }
}

export const world = new World();

export async function freePort() {
  const server = createServer();
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address();
  await new Promise((resolve) => server.close(resolve));
  return port;
}

/** Brings the data in. Specs may add to it, and use keys of their own for what they change.
 * @param {World} world */
async function fill(world) {
  const paid = await world.emit({ type: "record.published", key: "record:1", value: { title: "Hello", pages: 12345678901234567890n.toString() }, context: { ip: "10.0.0.7", request: EVIL } });
  world.published = paid.events[0];
  await world.emit(Array.from({ length: 6 }, (_, n) => ({ type: "record.changed", key: `record:${n % 3}`, value: { n } })));
  await world.emit({ type: "record.changed", key: EVIL, value: { [EVIL]: EVIL }, context: { [`x-${"y".repeat(20)}`]: EVIL } });
  await world.emit(Array.from({ length: 5 }, (_, n) => ({ type: "flaky", key: `flaky:${n}`, value: { n } })));
  await world.emit({ type: "patient", key: "patient:1" });
  await world.emit([{ type: "strict", key: "strict:1", value: { bad: true } }, { type: "strict", key: "strict:1", value: {} }, { type: "strict", key: "strict:2", value: {} }]);
  await world.emit([1, 2, 3].map((n) => ({ type: "slow", key: `slow:${n}` })));
  await world.emit([1, 2].map((n) => ({ type: "busy", key: `busy:${n}` })));
  await world.emit([{ type: "document.uploaded", key: "document:1", value: { pages: 3 } }, { type: "document.uploaded", key: "document:2", delay: "1h" }]);
  await world.emit({ type: "gone", key: "gone:1" });
  await world.emit([{ type: "record.published", key: "theirs:1", tenant: "shop", value: { theirs: true } }, { type: "flaky", key: "theirs:2", tenant: "shop" }]);
  await world.emit({ type: "article.written", key: "article:1", value: { title: "By an event" } });
  await world.post("/api/v1/orders", [
    { path: "/publish/article,117", value: { title: "Hello" } },
    { path: "/publish/article,118", value: { title: "It fails", fail: true } },
    { path: "/publish/article,119", value: { title: EVIL }, delay: "1h" },
  ]);
  await world.post("/api/v1/orders/publish/article,119/suspend");
  await world.post("/tasks?source=shop&collection=orders");
  await world.post("/tasks?source=letters&collection=scans");
  await world.put("/api/v1/handlers/mail/pause", { reason: `out of paper ${EVIL}` }, "operator");
  await world.until("/api/v1/tasks?status=FAILED", ({ tasks }) => tasks.length >= 7);
  await world.delete("/api/v1/handlers/mail/pause", "operator");
  await world.put("/api/v1/handlers/busy/pause", { reason: `for the tests ${EVIL}` }, "operator");
}
