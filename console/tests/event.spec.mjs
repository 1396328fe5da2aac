// One event: value, object, causes, caused events and tasks.

import assert from "node:assert/strict";
import { test } from "node:test";
import { navigateTo, checkScreen, openPage } from "./browser.mjs";
import { HOSTILE_TEXT, testServer } from "./test-server.mjs";

test("event: shows value, context, tasks and caused events", async () => {
  const id = testServer.publishedEvent.eventId;
  await testServer.waitUntil(`/api/v1/events/${id}`, ({ caused }) => caused[0]?.caused.length === 1);
  await openPage(`/events/${id}`, async (page) => {
    await page.getByRole("heading", { name: "record.published" }).waitFor();
    await page.getByText('"Hello"').waitFor();
    await page.getByText(HOSTILE_TEXT).first().waitFor();
    const tree = page.locator(".tree");
    await tree.getByRole("link", { name: "invoice.made", exact: true }).waitFor();
    const { tasks } = await testServer.get(`/api/v1/events/${id}`);
    assert.equal(await page.getByRole("region", { name: "Tasks of this event" }).locator("tbody tr").count(), tasks.length);
    await checkScreen(page, "event");
    await tree.getByRole("link", { name: "mail.sent", exact: true }).click();
    await page.getByRole("heading", { name: "mail.sent" }).waitFor();
    const causes = page.locator(".causes");
    await causes.getByText("invoice.made", { exact: true }).waitFor();
    await causes.getByText("record.published", { exact: true }).waitFor();
    await page.getByRole("button", { name: "Copy as" }).click();
    await page.getByRole("button", { name: /curl/ }).click();
    assert.match(await page.evaluate(() => navigator.clipboard.readText()), /^curl -H "Authorization: Bearer \$POINTSMAN_TOKEN" http:\/\/127\.0\.0\.1:\d+\/api\/v1\/events\/\d+$/);
  });
});

test("event: shortcuts open the previous and next event of the object", async () => {
  const { events } = await testServer.emit([1, 2, 3].map((n) => ({ type: `neighbour.${n}`, key: "neighbour:1" })));
  await openPage(`/events/${events[1].eventId}`, async (page) => {
    await page.locator(".object-events .current-event").getByText("neighbour.2").waitFor();
    await page.keyboard.press("[");
    await page.locator(".object-events .current-event").getByText("neighbour.1").waitFor();
    await page.keyboard.press("]");
    await page.locator(".object-events .current-event").getByText("neighbour.2").waitFor();
    await testServer.emit({ type: "neighbour.4", key: "neighbour:1" });
    await page.locator(".object-events").getByText("neighbour.4").waitFor();
  });
});

test("event: its tasks are updated live", async () => {
  const { eventId } = await testServer.emit({ type: "record.published", key: "live:1", value: { wait: true } });
  await openPage(`/events/${eventId}`, async (page) => {
    await page.getByRole("region", { name: "Tasks of this event" }).getByText("Succeeded").nth(2).waitFor();
    await page.locator(".tree").getByText("mail.sent").waitFor();
  });
});

test("event: long numbers keep their digits, and large values are bounded", async () => {
  const emitRawJson = (text) => fetch(`${testServer.url}/api/v1/events`, { method: "POST", body: text, headers: { authorization: `Bearer ${testServer.tokens.admin}`, "content-type": "application/json" } }).then((response) => response.json());
  const { eventId } = await emitRawJson('{"type":"long","value":{"number":12345678901234567890,"fraction":1.50}}');
  const largeEvent = await testServer.emit({ type: "large", value: { list: Array.from({ length: 20000 }, (_, n) => ({ n })), text: "x".repeat(100_000) } });
  await openPage(`/events/${eventId}`, async (page) => {
    await page.getByText("12345678901234567890").waitFor();
    await navigateTo(page, `/events/${largeEvent.eventId}`);
    await page.getByText("20,000 items").waitFor();
    await page.locator(".json-toggle").nth(1).click();
    await page.getByText("Show 100 of 19900 more").waitFor();
    assert.ok(await page.locator(".json *").count() < 4000);
  });
});

test("event: engine events, unknown ids and invalid ids are shown", async () => {
  const { eventSnapshots } = await testServer.get("/api/v1/events?limit=-1&return=TaskEnded");
  await openPage(`/events/${eventSnapshots[0].eventId}`, async (page) => {
    await page.getByText("the engine", { exact: true }).waitFor();
    await page.getByText("returnCode").waitFor();
    await navigateTo(page, "/events/1");
    await page.getByText("Not found").waitFor();
    await checkScreen(page, "event-none");
    await navigateTo(page, "/events/abc");
    await page.getByText("Not an event id").waitFor();
  }, { expectedErrors: /404/ });
});

test("event: names chosen by users are rendered as text", async () => {
  const { eventSnapshots } = await testServer.get(`/api/v1/events?limit=-1&key=${encodeURIComponent(HOSTILE_TEXT)}`);
  await openPage(`/events/${eventSnapshots[0].eventId}`, async (page) => {
    await page.getByText(HOSTILE_TEXT).first().waitFor();
    assert.equal(await page.locator("main img, main script").count(), 0);
    await checkScreen(page, "event-hostile");
  });
});
