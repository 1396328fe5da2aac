// Names and values that a hostile producer would choose: every screen shows them as text, and keeps working.

import assert from "node:assert/strict";
import { test } from "node:test";
import { navigateTo, openPage } from "./browser.mjs";
import { HOSTILE_TEXT, testServer } from "./test-server.mjs";

/** Keys with a special meaning in JavaScript, addresses, HTML or typography. */
const HOSTILE_KEYS = [
  "__proto__", "constructor", "hasOwnProperty", "javascript:window.stolen=1", "../../api/v1/me", "a/b?c=d#e&f", "%2e%2e%2f%00", "#/tasks",
  "{{7*7}}${7*7}", "\u202Egnp.exe\u2066", "e\u0301\u{1F4A9}\u200B", " ", "k".repeat(512), HOSTILE_TEXT,
];
const HOSTILE_TYPES = ["record.__proto__", "record.constructor", "record.toString"];
const HOSTILE_TENANTS = ["__proto__", "constructor", "..."];

/** A member named `__proto__` cannot be written as an object literal. */
const HOSTILE_VALUE = JSON.parse(`{"__proto__": {"stolen": 1}, "constructor": ${JSON.stringify(HOSTILE_TEXT)}, "toString": null, "link": "javascript:window.stolen=1"}`);

const queryString = (members) => new URLSearchParams(members).toString();

test("hostile: every key is listed and opens its own object", async () => {
  const { events } = await testServer.emit(HOSTILE_KEYS.map((key) => ({ type: HOSTILE_TYPES[0], key, value: HOSTILE_VALUE, context: { note: HOSTILE_TEXT } })));
  await openPage("/stream", async (page) => {
    await page.getByRole("heading", { name: "Stream" }).waitFor();
    for (const [n, key] of HOSTILE_KEYS.entries()) {
      await navigateTo(page, `/objects/${encodeURIComponent(key)}`);
      const link = page.locator(".object .table-box").getByText(String(events[n].eventId)).or(page.locator(`.object .table-box a[href$="${events[n].eventId}"]`)).first();
      await link.waitFor();
      assert.equal(new URL(page.url()).pathname, "/", key);
      await navigateTo(page, `/events/${events[n].eventId}`);
      await page.getByRole("heading", { name: HOSTILE_TYPES[0] }).waitFor();
      const links = await page.locator("main a").evaluateAll((all) => all.map((link) => link.protocol));
      assert.ok(links.every((protocol) => ["http:", "https:"].includes(protocol)), `${key}: ${links}`);
    }
  });
});

test("hostile: hostile types and tenants are filtered, counted and shown like others", async () => {
  await testServer.emit(HOSTILE_TENANTS.flatMap((tenant) => HOSTILE_TYPES.map((type) => ({ type, tenant, key: "hostile:1", value: HOSTILE_VALUE }))));
  await testServer.waitUntil(`/api/v1/tasks?${queryString({ key: "hostile:1", status: "SUCCESS" })}`, ({ tasks }) => tasks.length === HOSTILE_TENANTS.length * HOSTILE_TYPES.length);
  await openPage("/tasks", async (page) => {
    const rows = page.locator(".table-box tbody tr:not(.spacer-row)");
    for (const tenant of HOSTILE_TENANTS) {
      await navigateTo(page, `/tasks?${queryString({ tenant, key: "hostile:1" })}`);
      await page.waitForFunction((count) => document.querySelectorAll(".table-box tbody tr:not(.spacer-row)").length === count, HOSTILE_TYPES.length);
      for (const type of HOSTILE_TYPES) await rows.getByText(type.slice("record.".length)).first().waitFor();
      await navigateTo(page, `/stream?${queryString({ tenant, return: HOSTILE_TYPES[0] })}`);
      await page.getByText("hostile:1").first().waitFor();
      await navigateTo(page, `/objects/hostile%3A1?${queryString({ tenant })}`);
      await page.locator(".object .table-box").getByText(HOSTILE_TYPES[0]).first().waitFor();
    }
    for (const screen of ["overview", "objects", "failures", "handlers", "handlers/index", "nodes", "audit"]) {
      await navigateTo(page, `/${screen}`);
      await page.locator("main h1, main h2").first().waitFor();
    }
    assert.equal(await page.evaluate(() => ({}).stolen), undefined, "Object.prototype is unchanged");
  });
});
