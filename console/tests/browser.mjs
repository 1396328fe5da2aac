// The browser of the specs, and the checks of every screen.

import assert from "node:assert/strict";
import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";
import { TIMEOUT_MS, testServer } from "./test-server.mjs";

const testsDir = dirname(fileURLToPath(import.meta.url));
const axeSource = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
export const screenshotDir = process.env.CONSOLE_PICTURES ?? join(testsDir, "../../target/console");

let browser;
let specName = "";

/** @param {string} name name of the spec, for its screenshots */
export async function startBrowser(name) {
  specName = name;
  const executablePath = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"].find(existsSync);
  assert.ok(executablePath, "Chromium is not installed; run `apt-get install chromium` as root");
  // As root, for example in a container, Chromium does not start with its sandbox.
  browser = await chromium.launch({ executablePath, args: process.getuid?.() === 0 ? ["--no-sandbox"] : [] });
  mkdirSync(screenshotDir, { recursive: true });
}

export async function stopBrowser() {
  await browser?.close();
}

/** Opens a screen in its own window, signed in as a role, and passes it to `use`. Console errors fail the test.
 * @param {string} hash `/stream?key=record:1`
 * @param {(page: import("playwright-core").Page) => Promise<void>} use
 * @param {{role?: string | null, width?: number, height?: number, expectedErrors?: RegExp}} [options] console errors that
 *   match `expectedErrors` are ignored */
export async function openPage(hash, use, { role = "admin", width = 1280, height = 800, expectedErrors } = {}) {
  const context = await browser.newContext({ viewport: { width, height }, reducedMotion: "reduce", timezoneId: "Europe/Berlin" });
  await context.grantPermissions(["clipboard-read", "clipboard-write"], { origin: testServer.url });
  context.setDefaultTimeout(TIMEOUT_MS);
  const page = await context.newPage();
  const consoleMessages = [];
  page.on("console", (message) => {
    if (["error", "warning"].includes(message.type())) consoleMessages.push(message.text());
  });
  page.on("pageerror", (error) => consoleMessages.push(String(error.stack ?? error)));
  try {
    const token = role === null ? "" : `#token=${testServer.tokens[role]}&to=${encodeURIComponent(hash)}`;
    await page.goto(`${testServer.url}/${token}`);
    await use(page);
    assert.equal(await page.evaluate("window.stolen"), undefined, "a script in a user's text was executed");
    assert.deepEqual(consoleMessages.filter((text) => !expectedErrors?.test(text)), []);
  } catch (error) {
    await page.screenshot({ path: join(screenshotDir, `failed-${specName}.png`) }).catch(() => {});
    if (consoleMessages.length) error.message += `\nMessages of the browser console:\n${consoleMessages.join("\n")}`;
    throw error;
  } finally {
    await context.close();
  }
}

/** Navigates to another screen without reloading the page. @param {import("playwright-core").Page} page @param {string} hash */
export async function navigateTo(page, hash) {
  await page.evaluate((hash) => {
    location.hash = hash;
  }, hash);
}

/** Buffers deliveries of the stream until the returned function is called, which waits for the first one.
 * @param {import("playwright-core").Page} page */
export async function bufferDeliveries(page) {
  await page.evaluate(() => {
    const realRequest = window.requestAnimationFrame;
    window.bufferedFrames = [];
    window.requestAnimationFrame = (frame) => window.bufferedFrames.push(frame);
    window.deliver = () => {
      window.requestAnimationFrame = realRequest;
      for (const frame of window.bufferedFrames) realRequest(frame);
    };
  });
  return async () => {
    await page.waitForFunction(() => window.bufferedFrames.length > 0, undefined, { polling: 50 });
    await page.evaluate(() => window.deliver());
  };
}

/** Checks accessibility and the width on a phone, and takes screenshots.
 * @param {import("playwright-core").Page} page @param {string} name */
export async function checkScreen(page, name) {
  const originalSize = page.viewportSize();
  for (const [label, width, theme] of [["light", originalSize.width, "light"], ["dark", originalSize.width, "dark"], ["small", 400, "light"]]) {
    await page.setViewportSize({ width, height: originalSize.height });
    await page.emulateMedia({ colorScheme: theme });
    await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))));
    await page.screenshot({ path: join(screenshotDir, `${name}-${label}.png`) });
    await checkAccessibility(page, `${name}, ${label}`);
    const scrollWidth = await page.evaluate(() => document.documentElement.scrollWidth);
    assert.ok(scrollWidth <= width, `${name} is ${scrollWidth} px wide in a window of ${width} px`);
  }
  await page.setViewportSize(originalSize);
  await page.emulateMedia({ colorScheme: "light" });
}

/** @param {import("playwright-core").Page} page @param {string} label for the failure message */
export async function checkAccessibility(page, label) {
  const axeType = await page.evaluate("typeof axe");
  if (axeType === "undefined") await page.evaluate(axeSource);
  const { violations } = await page.evaluate("axe.run(document, {resultTypes: ['violations']})");
  const findings = violations.map(({ id, help, nodes }) => `${id}: ${help}\n${nodes.slice(0, 4).map((node) => `    ${node.html}`).join("\n")}`);
  assert.deepEqual(findings, [], `axe on ${label}`);
}

/** The number of elements in the page. */
export function countElements(page) {
  return page.evaluate(() => document.querySelectorAll("*").length);
}
