// A Redis server for one spec, and a client for it.

import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { TIMEOUT_MS, findFreePort } from "./test-server.mjs";

/** The program of the server. Debian's redis-tools has it under another name, and argv[0] selects its role. */
const SERVER_PROGRAM = ["redis-server", "redis-check-rdb"].find((name) => (process.env.PATH ?? "").split(delimiter).some((folder) => existsSync(join(folder, name))));

class TestRedisServer {
  async start() {
    this.folder = mkdtempSync(join(tmpdir(), "pointsman-console-redis-"));
    this.port = await findFreePort();
    this.url = `redis://127.0.0.1:${this.port}`;
    const settings = { port: this.port, bind: "127.0.0.1", dir: this.folder, save: "", appendonly: "yes", appendfsync: "always" };
    const flags = Object.entries(settings).flatMap(([name, value]) => [`--${name}`, String(value)]);
    this.process = spawn(SERVER_PROGRAM ?? "redis-server", flags, { argv0: "redis-server", stdio: "ignore" });
    const deadline = Date.now() + TIMEOUT_MS;
    while (!this.isReady()) {
      if (Date.now() > deadline) throw new Error("redis-server does not respond");
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }

  isReady() {
    try {
      return this.runCommand("PING") === "PONG";
    } catch {
      return false;
    }
  }

  /** Runs a command with redis-cli, and returns its output. @param {...string} words */
  runCommand(...words) {
    return execFileSync("redis-cli", ["-p", String(this.port), ...words], { encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] }).trim();
  }

  async stop() {
    if (this.process?.exitCode === null) {
      const ended = once(this.process, "exit");
      this.process.kill("SIGKILL");
      await ended;
    }
    if (this.folder) rmSync(this.folder, { recursive: true, force: true });
  }
}

export const redis = new TestRedisServer();
