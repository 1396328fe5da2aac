// The server of a spec: the real binary in its own folder, configured by test-server.yml, with sample data added through the
// API. The pictures use another configuration and other data.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:net";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { HOSTILE_TEXT, HandlerTarget } from "./handler-target.mjs";

export { HOSTILE_TEXT };

const testsDir = dirname(fileURLToPath(import.meta.url));
const ROLES = ["admin", "operator", "viewer", "producer", "worker", "shop"];
/** Timeout of every wait. */
export const TIMEOUT_MS = 20_000;

class TestServer {
  store = "sqlite:test.db";

  /** @param {string} binary @param {string} [configFile] @param {(server: TestServer) => Promise<void>} [addData] */
  async start(binary, configFile = "test-server.yml", addData = addSampleData) {
    this.binary = binary;
    this.configFile = configFile;
    this.target = new HandlerTarget();
    await this.target.start();
    this.folder = mkdtempSync(join(tmpdir(), "pointsman-console-"));
    this.tokens = Object.fromEntries(ROLES.map((role) => [role, `pm_test_${role}_${"x".repeat(32)}`]));
    this.port = await findFreePort();
    this.url = `http://127.0.0.1:${this.port}`;
    this.configure();
    await this.startProcess();
    await addData(this);
  }

  /** Writes the configuration, optionally changed. The server reloads it.
   * @param {(yaml: string) => string} [change] */
  configure(change = (yaml) => yaml) {
    const yaml = readFileSync(join(testsDir, this.configFile), "utf8").replaceAll("TARGET", this.target.url);
    const serverSettings = `store: ${this.store}\nserver: {listen: "127.0.0.1:${this.port}", drain: 1s}\n`;
    writeFileSync(join(this.folder, "pointsman.yml"), serverSettings + change(yaml));
  }

  async startProcess() {
    const env = { PATH: process.env.PATH, HOME: this.folder };
    for (const role of ROLES) env[`TOKEN_${role.toUpperCase()}`] = this.tokens[role];
    this.process = spawn(this.binary, ["serve", "--config", "pointsman.yml"], { cwd: this.folder, env, stdio: ["ignore", "ignore", "pipe"] });
    this.running = true;
    let stderrTail = "";
    this.process.stderr.setEncoding("utf8").on("data", (text) => {
      stderrTail = (stderrTail + text).slice(-8000);
    });
    const exited = once(this.process, "exit").then(([code]) => {
      this.running = false;
      if (!this.stopping) throw new Error(`the server ended with ${code}:\n${stderrTail}`);
    });
    exited.catch(() => {});
    await Promise.race([exited, this.waitUntil("/readyz", ({ status }) => status === "ok")]);
  }

  /** Stops the server. @param {NodeJS.Signals} [signal] */
  async stopProcess(signal = "SIGTERM") {
    this.stopping = true;
    this.target.release();
    const ended = once(this.process, "exit");
    this.process.kill(signal);
    await ended;
    this.stopping = false;
  }

  async stop() {
    if (this.running) await this.stopProcess("SIGKILL");
    this.target?.stop();
    if (this.folder) rmSync(this.folder, { recursive: true, force: true });
  }

  /** @param {string} method @param {string} path @param {unknown} [body] @param {string} [role] */
  async call(method, path, body, role = "admin") {
    const headers = { authorization: `Bearer ${this.tokens[role]}` };
    if (body !== undefined) headers["content-type"] = "application/json";
    const response = await fetch(this.url + path, { method, headers, body: body === undefined ? undefined : JSON.stringify(body) });
    const text = await response.text();
    const responseBody = text.startsWith("{") ? JSON.parse(text) : text;
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`);
    return responseBody;
  }

  get(path, role) { return this.call("GET", path, undefined, role); }
  post(path, body, role) { return this.call("POST", path, body, role); }
  put(path, body, role) { return this.call("PUT", path, body, role); }
  delete(path, role) { return this.call("DELETE", path, undefined, role); }

  /** Emits events, and returns the response.
   * @param {object | object[]} events */
  emit(events) { return this.post("/api/v1/events", events); }

  /** Repeats a GET until the response satisfies a condition. @param {string} path @param {(body: any) => boolean} condition */
  async waitUntil(path, condition, role) {
    const deadline = Date.now() + TIMEOUT_MS;
    let last;
    while (Date.now() < deadline) {
      try {
        last = await this.get(path, role);
        if (condition(last)) return last;
      } catch (error) {
        last = error;
      }
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    throw new Error(`the condition on ${path} was not met within ${TIMEOUT_MS} ms; the last response was ${last instanceof Error ? last.message : JSON.stringify(last).slice(0, 1000)}`);
  }
}

export const testServer = new TestServer();

export async function findFreePort() {
  const server = createServer();
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address();
  await new Promise((resolve) => server.close(resolve));
  return port;
}

/** Adds the sample data. Specs may add more, and use keys of their own for data that they change.
 * @param {TestServer} server */
async function addSampleData(server) {
  const emitted = await server.emit({ type: "record.published", key: "record:1", value: { title: "Hello", pages: 12345678901234567890n.toString() }, context: { ip: "10.0.0.7", request: HOSTILE_TEXT } });
  server.publishedEvent = emitted.events[0];
  await server.emit(Array.from({ length: 6 }, (_, n) => ({ type: "record.changed", key: `record:${n % 3}`, value: { n } })));
  await server.emit({ type: "record.changed", key: HOSTILE_TEXT, value: { [HOSTILE_TEXT]: HOSTILE_TEXT }, context: { [`x-${"y".repeat(20)}`]: HOSTILE_TEXT } });
  await server.emit(Array.from({ length: 5 }, (_, n) => ({ type: "flaky", key: `flaky:${n}`, value: { n } })));
  await server.emit({ type: "patient", key: "patient:1" });
  await server.emit([{ type: "strict", key: "strict:1", value: { bad: true } }, { type: "strict", key: "strict:1", value: {} }, { type: "strict", key: "strict:2", value: {} }]);
  await server.emit([1, 2, 3].map((n) => ({ type: "slow", key: `slow:${n}` })));
  await server.emit([1, 2].map((n) => ({ type: "busy", key: `busy:${n}` })));
  await server.emit([{ type: "document.uploaded", key: "document:1", value: { pages: 3 } }, { type: "document.uploaded", key: "document:2", delay: "1h" }]);
  await server.emit({ type: "gone", key: "gone:1" });
  await server.emit([{ type: "record.published", key: "theirs:1", tenant: "shop", value: { theirs: true } }, { type: "flaky", key: "theirs:2", tenant: "shop" }]);
  await server.emit({ type: "article.written", key: "article:1", value: { title: "By an event" } });
  await server.post("/api/v1/orders", [
    { path: "/publish/article,117", value: { title: "Hello" } },
    { path: "/publish/article,118", value: { title: "It fails", fail: true } },
    { path: "/publish/article,119", value: { title: HOSTILE_TEXT }, delay: "1h" },
  ]);
  await server.post("/api/v1/orders/publish/article,119/suspend");
  await server.post("/tasks?source=shop&collection=orders");
  await server.post("/tasks?source=letters&collection=scans");
  await server.put("/api/v1/handlers/mail/pause", { reason: `out of paper ${HOSTILE_TEXT}` }, "operator");
  await server.waitUntil("/api/v1/tasks?status=FAILED", ({ tasks }) => tasks.length >= 7);
  await server.delete("/api/v1/handlers/mail/pause", "operator");
  await server.put("/api/v1/handlers/busy/pause", { reason: `for the tests ${HOSTILE_TEXT}` }, "operator");
}
