// One spec, with a server and a browser of its own; that of Redis has such a store.

import { after } from "node:test";
import { startBrowser, stopBrowser } from "./browser.mjs";
import { redis } from "./redis.mjs";
import { world } from "./world.mjs";

const [binary, spec] = process.argv.slice(2);

const end = async () => {
  await stopBrowser();
  await world.stop();
  await redis.stop();
};

try {
  if (spec === "redis") {
    await redis.start();
    world.store = redis.url;
  }
  await world.start(binary);
  await startBrowser(spec);
} catch (error) {
  await end();
  throw error;
}
after(end);
await import(`./${spec}.spec.mjs`);
