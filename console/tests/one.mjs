// One spec, with a server and a browser of its own.

import { after } from "node:test";
import { startBrowser, stopBrowser } from "./browser.mjs";
import { world } from "./world.mjs";

const [binary, spec] = process.argv.slice(2);

const end = async () => {
  await stopBrowser();
  await world.stop();
};

try {
  await world.start(binary);
  await startBrowser(spec);
} catch (error) {
  await end();
  throw error;
}
after(end);
await import(`./${spec}.spec.mjs`);
