// The served files: types, size, vendored sources and response headers.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { parse } from "acorn";
import { openPage } from "./browser.mjs";
import { checksumsFileText, sha256, vendorDir, expectedVendorFiles } from "./vendor.mjs";
import { testServer } from "./test-server.mjs";

const testsDir = dirname(fileURLToPath(import.meta.url));
const consoleDir = join(testsDir, "..");

test("files: the type check passes", () => {
  const result = spawnSync(join(testsDir, "node_modules/.bin/tsc"), ["-p", join(testsDir, "tsconfig.json")], { encoding: "utf8" });
  assert.equal(result.status, 0, result.stdout + result.stderr);
});

test("files: vendored files are identical to those of their packages", () => {
  for (const { name, text } of expectedVendorFiles()) {
    assert.equal(sha256(readFileSync(join(vendorDir, name), "utf8")), sha256(text), `vendor/${name}; run node vendor.mjs --write to update it`);
  }
  assert.equal(readFileSync(join(vendorDir, "checksums.txt"), "utf8"), checksumsFileText());
});

/** All modules of the console, relative to the served folder. */
function listModules() {
  const nested = ["data", "parts", "shell", "screens"].flatMap((folder) => readdirSync(join(consoleDir, folder), { recursive: true }).map((name) => `${folder}/${name}`));
  return ["main.js", ...nested.filter((name) => name.endsWith(".js"))];
}

test("files: served modules equal the source without comments", async () => {
  const syntaxTree = (text) => JSON.stringify(parse(text, { ecmaVersion: "latest", sourceType: "module" }), (name, value) => {
    if (typeof value === "bigint" || value instanceof RegExp) return String(value);
    return name === "start" || name === "end" ? undefined : value;
  });
  for (const name of listModules()) {
    const servedText = await (await fetch(`${testServer.url}/console/dev/${name}`)).text();
    assert.doesNotMatch(servedText, /^\s*\/\//m, name);
    assert.equal(syntaxTree(servedText), syntaxTree(readFileSync(join(consoleDir, name), "utf8")), name);
  }
});

test("files: modules are short and never insert markup", () => {
  for (const name of listModules()) {
    const text = readFileSync(join(consoleDir, name), "utf8");
    assert.ok(text.split("\n").length <= 300, `${name} is longer than 300 lines`);
    assert.doesNotMatch(text, /innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|style="/, name);
  }
});

test("files: the first load is below 80 kB", async () => {
  let paths = [];
  await openPage("/overview", async (page) => {
    await page.locator(".u-wrap").first().waitFor();
    paths = await page.evaluate(() => performance.getEntriesByType("resource").map((entry) => new URL(entry.name).pathname));
  });
  const files = ["/", ...new Set(paths.filter((path) => path.startsWith("/console/")))];
  let bytes = 0;
  for (const path of files) {
    const response = await fetch(testServer.url + path, { headers: { "accept-encoding": "gzip", accept: "text/html" } });
    bytes += Number(response.headers.get("content-length"));
  }
  console.log(`the first load: ${files.length} files, ${(bytes / 1000).toFixed(1)} kB`);
  assert.ok(files.length > 40 && bytes < 80_000, `${files.length} files, ${bytes} bytes`);
});

test("files: responses have security headers, compression and ETags", async () => {
  const pageResponse = await fetch(`${testServer.url}/`, { headers: { accept: "text/html" } });
  assert.equal(pageResponse.headers.get("content-security-policy"),
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'");
  const mainModulePath = /src="([^"]+main\.js)"/.exec(await pageResponse.text())[1];
  const file = await fetch(testServer.url + mainModulePath, { headers: { "accept-encoding": "gzip" } });
  assert.equal(file.headers.get("content-encoding"), "gzip");
  assert.equal(file.headers.get("x-content-type-options"), "nosniff");
  const again = await fetch(testServer.url + mainModulePath, { headers: { "if-none-match": file.headers.get("etag") } });
  assert.equal(again.status, 304);
  for (const path of ["/console/dev/tests/test-server.yml", "/console/dev/README.md", "/console/dev/vendor/preact.d.ts", "/console/other/main.js", "/console/dev/..%2Fcrates%2Fserver%2FCargo.toml",
    "/console/dev/screens%2F..%2Ftests%2Ftest-server.yml"]) {
    assert.equal((await fetch(testServer.url + path)).status, 404, path);
  }
});
