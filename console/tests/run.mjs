// All tests of the console: `node run.mjs BINARY [SPEC…]`. Each spec has a process, a server and a browser of its own,
// so that they are independent. A few run in parallel, since they mostly wait.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { readdirSync } from "node:fs";
import { cpus } from "node:os";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const testsDir = dirname(fileURLToPath(import.meta.url));
const [binary, ...requestedSpecs] = process.argv.slice(2);
assert.ok(binary, "pass the binary to test: node run.mjs target/debug/pointsman");
const allSpecs = readdirSync(testsDir).filter((name) => name.endsWith(".spec.mjs")).map((name) => name.replace(".spec.mjs", "")).sort();
for (const name of requestedSpecs) assert.ok(allSpecs.includes(name), `unknown spec ${name}; the specs are ${allSpecs.join(", ")}`);

const pendingSpecs = requestedSpecs.length ? requestedSpecs : allSpecs;
const failedSpecs = [];
const startedAt = Date.now();

async function runSpecs() {
  for (let spec = pendingSpecs.shift(); spec; spec = pendingSpecs.shift()) {
    if (!(await runSpec(spec))) failedSpecs.push(spec);
  }
}

/** Runs a spec and prints its output at the end, since several run at a time.
 * @param {string} spec
 * @returns {Promise<boolean>} */
function runSpec(spec) {
  return new Promise((resolved) => {
    const child = spawn(process.execPath, ["--test-reporter=spec", join(testsDir, "run-spec.mjs"), resolve(binary), spec]);
    const output = [];
    child.stdout.on("data", (chunk) => output.push(chunk));
    child.stderr.on("data", (chunk) => output.push(chunk));
    child.on("close", (code) => {
      process.stdout.write(Buffer.concat(output));
      resolved(code === 0);
    });
  });
}

await Promise.all(Array.from({ length: Math.min(4, cpus().length + 1) }, runSpecs));
console.log(`${failedSpecs.length ? `failed: ${failedSpecs.join(", ")}` : "all passed"}, in ${Math.round((Date.now() - startedAt) / 1000)} s`);
process.exitCode = failedSpecs.length ? 1 : 0;
