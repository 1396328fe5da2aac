// Runs one spec with its own server and browser; the spec `redis` uses a Redis store.

import { after } from "node:test";
import { startBrowser, stopBrowser } from "./browser.mjs";
import { redis } from "./redis.mjs";
import { testServer } from "./test-server.mjs";

const [binary, spec] = process.argv.slice(2);

const stopAll = async () => {
  await stopBrowser();
  await testServer.stop();
  await redis.stop();
};

try {
  if (spec === "redis") {
    await redis.start();
    testServer.store = redis.url;
  }
  await testServer.start(binary);
  await startBrowser(spec);
} catch (error) {
  await stopAll();
  throw error;
}
after(stopAll);
await import(`./${spec}.spec.mjs`);
