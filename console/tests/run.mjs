// All tests of the console: `node run.mjs BINARY [SPEC…]`. Each spec has a process, a server and a browser of its own,
// so that none depends on what another did; a few run at a time, since much of it is waiting.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { readdirSync } from "node:fs";
import { cpus } from "node:os";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const [binary, ...wanted] = process.argv.slice(2);
assert.ok(binary, "say which binary to test: node run.mjs target/debug/pointsman");
const specs = readdirSync(here).filter((name) => name.endsWith(".spec.mjs")).map((name) => name.replace(".spec.mjs", "")).sort();
for (const name of wanted) assert.ok(specs.includes(name), `there is no spec ${name}; there are ${specs.join(", ")}`);

const waiting = wanted.length ? wanted : specs;
const failed = [];
const begun = Date.now();

async function work() {
  for (let spec = waiting.shift(); spec; spec = waiting.shift()) {
    if (!(await run(spec))) failed.push(spec);
  }
}

/** Runs a spec, and shows what it said once it has ended: several at a time would be mixed up.
 * @param {string} spec
 * @returns {Promise<boolean>} */
function run(spec) {
  return new Promise((resolved) => {
    const child = spawn(process.execPath, ["--test-reporter=spec", join(here, "one.mjs"), resolve(binary), spec]);
    const pieces = [];
    child.stdout.on("data", (piece) => pieces.push(piece));
    child.stderr.on("data", (piece) => pieces.push(piece));
    child.on("close", (code) => {
      process.stdout.write(Buffer.concat(pieces));
      resolved(code === 0);
    });
  });
}

await Promise.all(Array.from({ length: Math.min(4, cpus().length + 1) }, work));
console.log(`${failed.length ? `these failed: ${failed.join(", ")}` : "all passed"}, in ${Math.round((Date.now() - begun) / 1000)} s`);
process.exitCode = failed.length ? 1 : 0;
