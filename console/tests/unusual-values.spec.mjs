// Unusual, huge or deeply nested values are shown without affecting other rows.

import assert from "node:assert/strict";
import { test } from "node:test";
import { checkScreen, openPage } from "./browser.mjs";
import { testServer } from "./test-server.mjs";

const rows = (page) => page.locator(".table-box tbody tr:not(.spacer-row)");

/** Emits raw JSON, since `JSON.stringify` cannot write such numbers, and returns the stored event. */
async function emitRawJson(text) {
  const headers = { authorization: `Bearer ${testServer.tokens.admin}`, "content-type": "application/json" };
  const response = await fetch(`${testServer.url}/api/v1/events`, { method: "POST", headers, body: text });
  const body = await response.text();
  assert.ok(response.ok, body);
  return JSON.parse(body).events[0];
}

const LONG_NUMBERS = '{"id":12345678901234567891,"rate":3.14159265358979323846,"even":1.50}';

test("unusual values: numbers are shown with all digits, also in the stream", async () => {
  await openPage("/stream?return=digits", async (page) => {
    await page.getByText("Live", { exact: true }).waitFor();
    const { eventId } = await emitRawJson(`{"type":"digits.live","key":"digits:1","value":${LONG_NUMBERS}}`);
    const exact = /12345678901234567891.*3\.14159265358979323846.*1\.5/;
    await page.getByText("digits.live").waitFor();
    assert.match(await rows(page).first().innerText(), exact, "streamed");
    await page.reload();
    await page.getByText("digits.live").waitFor();
    assert.match(await rows(page).first().innerText(), exact, "read");
    await page.goto(`${testServer.url}/#/events/${eventId}`);
    await page.getByRole("group", { name: "Value" }).getByText("12345678901234567891").waitFor();
    await page.getByRole("button", { name: "Copy Value" }).click();
    const copied = await page.evaluate(() => navigator.clipboard.readText());
    for (const digits of ["12345678901234567891", "3.14159265358979323846"]) assert.ok(copied.includes(digits), copied);
  });
});

test("unusual values: deeply nested values are shown, and their neighbours, too", async () => {
  await openPage("/stream?return=deep", async (page) => {
    await page.getByText("Live", { exact: true }).waitFor();
    const deep = await emitRawJson(`{"type":"deep.one","key":"deep:1","value":${"[".repeat(99)}${"]".repeat(99)}}`);
    await emitRawJson('{"type":"deep.two","key":"deep:1","value":2}');
    await page.getByText("deep.two").waitFor();
    await page.getByText("deep.one").waitFor();
    await page.goto(`${testServer.url}/#/events/${deep.eventId}`);
    await page.getByRole("group", { name: "Value" }).waitFor();
    assert.equal(await page.getByText("crashed").count(), 0);
  });
});

test("unusual values: events named like frames of the stream are normal events", async () => {
  await openPage("/stream?key=called:1&tasks=1", async (page) => {
    await page.getByText("Live", { exact: true }).waitFor();
    await page.getByText("No event matches").waitFor();
    for (const type of ["task.done", "Torn.page", "message", "end"]) await emitRawJson(`{"type":"${type}","key":"called:1","value":{"called":"${type}"}}`);
    await rows(page).filter({ hasText: '{ "called": "end" }' }).waitFor();
    for (const type of ["task.done", "Torn.page", "message"]) assert.equal(await rows(page).filter({ hasText: `{ "called": "${type}" }` }).count(), 1, type);
    assert.equal(await page.getByText("Events are missing").count(), 0);
  });
});

test("unusual values: long and right-to-left names do not break the layout", async () => {
  const key = `\u202e${"k".repeat(200)}/${"ö".repeat(100)}`;
  const type = `t${".long-type".repeat(10)}`;
  const event = await emitRawJson(JSON.stringify({ type: `flaky.${type}`, key, value: { ["n".repeat(300)]: "w".repeat(3000) }, context: { ["c".repeat(60)]: "x".repeat(500) } }));
  const [task] = (await testServer.waitUntil(`/api/v1/tasks?key=${encodeURIComponent(key)}`, ({ tasks }) => tasks[0]?.status === "FAILED")).tasks;
  const screens = { event: `/events/${event.eventId}`, task: `/tasks/${task.id}`, tasks: `/tasks?key=${encodeURIComponent(key)}`, stream: `/stream?key=${encodeURIComponent(key)}`, failures: "/failures" };
  for (const [name, hash] of Object.entries(screens)) {
    await openPage(hash, async (page) => {
      await page.locator("main").getByText(/flaky/).first().waitFor();
      assert.deepEqual(await page.evaluate(() => [...document.querySelectorAll("dt, dd")].filter((element) => element.scrollWidth > element.clientWidth).map((element) => element.textContent)), [], name);
      await checkScreen(page, `unusual-values-${name}`);
    });
  }
});
