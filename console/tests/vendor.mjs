// Where the files under console/vendor come from. `node vendor.mjs --write` creates them again from the packages that
// package-lock.json names; the tests only compare.
//
// Browsers cannot resolve bare module names, so these become relative; references to files that are not served are removed.

import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const testsDir = dirname(fileURLToPath(import.meta.url));
export const vendorDir = join(testsDir, "../vendor");

/** A file under vendor/ and where it is in its package. */
const VENDORED_FILES = {
  "preact.js": "preact/dist/preact.mjs",
  "preact-hooks.js": "preact/hooks/dist/hooks.mjs",
  "htm.js": "htm/dist/htm.mjs",
  "signals-core.js": "@preact/signals-core/dist/signals-core.mjs",
  "signals.js": "@preact/signals/dist/signals.mjs",
  "uplot.js": "uplot/dist/uPlot.iife.min.js",
  "uplot.css": "uplot/dist/uPlot.min.css",
  "licences/preact.txt": "preact/LICENSE",
  "licences/htm.txt": "htm/LICENSE",
  "licences/signals.txt": "@preact/signals/LICENSE",
  "licences/uplot.txt": "uplot/LICENSE",
};

/** @type {[RegExp, string][]} */
const TEXT_REPLACEMENTS = [
  [/from"preact\/hooks"/g, 'from"./preact-hooks.js"'],
  [/from"preact"/g, 'from"./preact.js"'],
  [/from"@preact\/signals-core"/g, 'from"./signals-core.js"'],
  [/\/\/# sourceMappingURL=.*\n?/g, ""],
];

/** The expected content of every vendored file. */
export function expectedVendorFiles() {
  return Object.entries(VENDORED_FILES).map(([name, source]) => {
    const text = readFileSync(join(testsDir, "node_modules", source), "utf8");
    const changed = TEXT_REPLACEMENTS.reduce((text, [from, to]) => text.replace(from, to), text);
    return { name, text: changed.trimEnd() + "\n" };
  });
}

/** @param {string} text */
export function sha256(text) {
  return createHash("sha256").update(text).digest("hex");
}

/** The checksum file, in the format of `sha256sum -c`. */
export function checksumsFileText() {
  return expectedVendorFiles().map(({ name, text }) => `${sha256(text)}  ${name}\n`).join("");
}

if (process.argv[2] === "--write") {
  mkdirSync(join(vendorDir, "licences"), { recursive: true });
  for (const { name, text } of expectedVendorFiles()) writeFileSync(join(vendorDir, name), text);
  writeFileSync(join(vendorDir, "checksums.txt"), checksumsFileText());
}
