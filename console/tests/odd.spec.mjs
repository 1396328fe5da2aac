// Values that are odd, huge or deep: shown as they are, and never at the cost of what stands beside them.

import assert from "node:assert/strict";
import { test } from "node:test";
import { look, visit } from "./browser.mjs";
import { world } from "./world.mjs";

const rows = (page) => page.locator(".table-box tbody tr:not(.spacer-row)");

/** Emits what is written, digit by digit: `JSON.stringify` cannot write such numbers. */
async function emit(text) {
  const headers = { authorization: `Bearer ${world.tokens.admin}`, "content-type": "application/json" };
  const response = await fetch(`${world.url}/api/v1/events`, { method: "POST", headers, body: text });
  const answer = await response.text();
  assert.ok(response.ok, answer);
  return JSON.parse(answer).events[0];
}

const LONG = '{"id":12345678901234567891,"rate":3.14159265358979323846,"even":1.50}';

test("odd: numbers are shown with all of their digits, on the stream as well", async () => {
  await visit("/stream?return=digits", async (page) => {
    await page.getByText("Live", { exact: true }).waitFor();
    const { eventId } = await emit(`{"type":"digits.live","key":"digits:1","value":${LONG}}`);
    const exact = /12345678901234567891.*3\.14159265358979323846.*1\.5/;
    await page.getByText("digits.live").waitFor();
    assert.match(await rows(page).first().innerText(), exact, "as it came");
    await page.reload();
    await page.getByText("digits.live").waitFor();
    assert.match(await rows(page).first().innerText(), exact, "as it was read");
    await page.goto(`${world.url}/#/events/${eventId}`);
    await page.getByRole("group", { name: "Value" }).getByText("12345678901234567891").waitFor();
    await page.getByRole("button", { name: "Copy Value" }).click();
    const copied = await page.evaluate(() => navigator.clipboard.readText());
    for (const digits of ["12345678901234567891", "3.14159265358979323846"]) assert.ok(copied.includes(digits), copied);
  });
});

test("odd: what is nested deeply is shown, and those beside it, too", async () => {
  await visit("/stream?return=deep", async (page) => {
    await page.getByText("Live", { exact: true }).waitFor();
    const deep = await emit(`{"type":"deep.one","key":"deep:1","value":${"[".repeat(99)}${"]".repeat(99)}}`);
    await emit('{"type":"deep.two","key":"deep:1","value":2}');
    await page.getByText("deep.two").waitFor();
    await page.getByText("deep.one").waitFor();
    await page.goto(`${world.url}/#/events/${deep.eventId}`);
    await page.getByRole("group", { name: "Value" }).waitFor();
    assert.equal(await page.getByText("crashed").count(), 0);
  });
});

test("odd: events that are called like what the stream itself tells are events like others", async () => {
  await visit("/stream?key=called:1&tasks=1", async (page) => {
    await page.getByText("Live", { exact: true }).waitFor();
    await page.getByText("No event matches").waitFor();
    for (const type of ["task.done", "Torn.page", "message", "end"]) await emit(`{"type":"${type}","key":"called:1","value":{"called":"${type}"}}`);
    await rows(page).filter({ hasText: '{ "called": "end" }' }).waitFor();
    for (const type of ["task.done", "Torn.page", "message"]) assert.equal(await rows(page).filter({ hasText: `{ "called": "${type}" }` }).count(), 1, type);
    assert.equal(await page.getByText("Events are missing").count(), 0);
  });
});

test("odd: names that are long or turn the text around stay in their place", async () => {
  const key = `\u202e${"k".repeat(200)}/${"ö".repeat(100)}`;
  const type = `t${".long-type".repeat(10)}`;
  const event = await emit(JSON.stringify({ type: `flaky.${type}`, key, value: { ["n".repeat(300)]: "w".repeat(3000) }, context: { ["c".repeat(60)]: "x".repeat(500) } }));
  const [task] = (await world.until(`/api/v1/tasks?key=${encodeURIComponent(key)}`, ({ tasks }) => tasks[0]?.status === "FAILED")).tasks;
  const screens = { event: `/events/${event.eventId}`, task: `/tasks/${task.id}`, tasks: `/tasks?key=${encodeURIComponent(key)}`, stream: `/stream?key=${encodeURIComponent(key)}`, failures: "/failures" };
  for (const [name, hash] of Object.entries(screens)) {
    await visit(hash, async (page) => {
      await page.locator("main").getByText(/flaky/).first().waitFor();
      assert.deepEqual(await page.evaluate(() => [...document.querySelectorAll("dt, dd")].filter((one) => one.scrollWidth > one.clientWidth).map((one) => one.textContent)), [], name);
      await look(page, `odd-${name}`);
    });
  }
});
