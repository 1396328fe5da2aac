// Objects: search, events, and lanes with their actions.

import assert from "node:assert/strict";
import { test } from "node:test";
import { navigateTo, bufferDeliveries, checkScreen, openPage } from "./browser.mjs";
import { HOSTILE_TEXT, testServer } from "./test-server.mjs";

const objectPath = (key, tenant) => `/objects/${encodeURIComponent(key)}${tenant ? `?tenant=${tenant}` : ""}`;
const eventRows = (page) => page.locator(".object .table-box tbody tr:not(.spacer-row)");
const readTaskStatuses = async (key) => (await testServer.get(`/api/v1/tasks?${new URLSearchParams({ key })}`)).tasks.map((task) => task.status);

/** Creates a halted lane with `waitingCount` waiting tasks. */
async function createHaltedLane(key, waitingCount) {
  testServer.target.replies.ledger = (body) => (body?.bad ? { status: 422, body: { log: [`torn ${HOSTILE_TEXT}`] } } : {});
  await testServer.emit([{ type: "ledger", key, value: { bad: true } }, ...Array.from({ length: waitingCount }, (_, n) => ({ type: "ledger", key, value: { n } }))]);
  await testServer.waitUntil(`/api/v1/tasks?${new URLSearchParams({ key, status: "FAILED" })}`, ({ tasks }) => tasks.length === 1);
}

test("objects: an object is found by key and tenant, among halted lanes, and among recent objects", async () => {
  await openPage("/objects", async (page) => {
    const haltedLanes = page.getByRole("region", { name: "Halted lanes" }).first();
    await haltedLanes.getByText("strict:1").waitFor();
    await testServer.emit({ type: "record.changed", key: `${HOSTILE_TEXT} again`, value: {} });
    await page.getByRole("region", { name: "Recently changed objects" }).getByText(`${HOSTILE_TEXT} again`).waitFor();
    await checkScreen(page, "objects");
    await testServer.emit({ type: "record.changed", key: "objects:new", value: {} });
    await page.getByText("objects:new").waitFor();
    await page.getByLabel("Key").fill("theirs:1");
    await page.getByLabel("Tenant").fill("shop");
    await page.keyboard.press("Enter");
    await page.waitForFunction(() => location.hash === "#/objects/theirs%3A1?tenant=shop");
    await eventRows(page).first().waitFor();
    await page.goBack();
    await haltedLanes.getByText("strict:1").click();
    await page.getByRole("heading", { name: "strict:1" }).waitFor();
  });
});

test("objects: an event that is read and streamed is counted once", async () => {
  await openPage("/overview", async (page) => {
    await page.getByText("Live", { exact: true }).waitFor();
    const deliver = await bufferDeliveries(page);
    await page.route("**/api/v1/events?*", async (route) => {
      await testServer.emit({ type: "record.changed", key: "objects:once", value: {} });
      await route.continue();
    }, { times: 1 });
    await navigateTo(page, "/objects");
    const row = page.getByRole("region", { name: "Recently changed objects" }).getByRole("row").filter({ hasText: "objects:once" });
    await row.waitFor();
    await deliver();
    await testServer.emit({ type: "record.changed", key: "objects:after", value: {} });
    await page.getByText("objects:after").waitFor();
    assert.equal(await row.getByRole("cell").nth(3).innerText(), "1");
  });
});

test("objects: events are listed newest first, with the status of their tasks", async () => {
  const key = `chain:1 ${HOSTILE_TEXT}`;
  await testServer.emit([1, 2, 3].map((n) => ({ type: "record.changed", key, value: { n, evil: HOSTILE_TEXT } })));
  await testServer.waitUntil(`/api/v1/tasks?${new URLSearchParams({ key, status: "SUCCESS" })}`, ({ tasks }) => tasks.length === 3);
  await openPage(objectPath(key), async (page) => {
    await eventRows(page).nth(2).waitFor();
    const shownIds = async () => (await page.locator(".object tbody td:last-child").allInnerTexts()).map(Number);
    const { events: storedEvents } = await testServer.get(`/api/v1/objects/${encodeURIComponent(key)}`);
    assert.deepEqual(await shownIds(), storedEvents.map((event) => event.eventId));
    await page.getByText("First event of the object.").waitFor();
    await page.waitForFunction(() => document.querySelectorAll(".event-tasks .status-icon.good").length === 3);
    await page.getByText("No open tasks for this object.").waitFor();
    const { events: [{ eventId }] } = await testServer.emit({ type: "record.changed", key, value: { n: 4 } });
    await page.waitForFunction(() => document.querySelectorAll(".event-tasks .status-icon.good").length === 4);
    assert.equal((await shownIds())[0], eventId);
    await checkScreen(page, "object-events");
    await page.keyboard.press("j");
    await page.keyboard.press("Enter");
    await page.waitForFunction((id) => location.hash === `#/events/${id}`, eventId);
  });
});

test("objects: the head of a halted lane can be run again or given up", async () => {
  await createHaltedLane("objects:1", 2);
  await openPage(objectPath("objects:1"), async (page) => {
    const lane = page.locator(".lane");
    await lane.getByText("Halted").waitFor();
    await lane.getByText("2 tasks behind it").waitFor();
    await lane.getByText(HOSTILE_TEXT.slice(0, 19)).first().waitFor();
    await checkScreen(page, "object");
    const head = (await testServer.get("/api/v1/tasks?key=objects:1&status=FAILED")).tasks[0];
    await lane.getByRole("button", { name: "Run again" }).click();
    await testServer.waitUntil(`/api/v1/tasks/${head.id}`, (task) => task.attempt === 2 && task.status === "FAILED");
    assert.deepEqual(await readTaskStatuses("objects:1"), ["SCHEDULED", "SCHEDULED", "FAILED"]);
    await lane.getByText("Halted").waitFor();
    await lane.getByRole("button", { name: "Give up" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Cancel task" }).click();
    await page.getByText("No open tasks for this object.").waitFor();
    assert.deepEqual(await readTaskStatuses("objects:1"), ["SUCCESS", "SUCCESS", "CANCELED"]);
  }, { role: "operator" });
});

test("objects: a halted head without waiting tasks is shown, and continues after a retry", async () => {
  await createHaltedLane("objects:2", 0);
  await openPage(objectPath("objects:2"), async (page) => {
    await page.locator(".lane").getByText("no tasks behind it").waitFor();
    assert.equal(await page.locator(".lane button").count(), 0, "a viewer has no actions");
    testServer.target.replies.ledger = () => ({});
    const [{ id }] = (await testServer.get("/api/v1/tasks?key=objects:2")).tasks;
    await testServer.post(`/api/v1/tasks/${id}/retry`);
    await page.getByText("No open tasks for this object.").waitFor();
  }, { role: "viewer" });
});

test("objects: a long lane is counted, and unordered handlers are shown", async () => {
  await testServer.emit([1, 2].map((n) => ({ type: "scribe", key: "objects:4", value: { n } })));
  await createHaltedLane("objects:4", 1200);
  await openPage(objectPath("objects:4"), async (page) => {
    const lanes = page.locator(".lane");
    await lanes.nth(1).waitFor();
    await lanes.nth(0).getByText("Halted").waitFor();
    await lanes.nth(0).getByText("1,200 tasks behind it").waitFor();
    await lanes.nth(1).getByRole("link", { name: "scribe", exact: true }).waitFor();
    await lanes.nth(1).getByText("unordered: its tasks run in parallel").waitFor();
    await lanes.nth(1).getByText("Waiting", { exact: true }).first().waitFor();
    const oldest = (await testServer.get("/api/v1/tasks?key=objects:4&handler=scribe")).tasks[1];
    assert.equal(await lanes.nth(1).locator(`a[href="#/tasks/${encodeURIComponent(oldest.id)}"]`).count(), 2);
    assert.equal(await lanes.count(), 2);
  });
});

test("objects: waiting lanes show the reason", async () => {
  await openPage(objectPath("busy:1"), async (page) => {
    await page.locator(".lane .badge").getByText("Waiting", { exact: true }).first().waitFor();
    await page.locator(".lane-why").waitFor();
    await page.getByRole("link", { name: "Task details" }).click();
    await page.getByText("Why it is waiting").waitFor();
  });
  let reply;
  testServer.target.replies.ledger = () => new Promise((resolve) => { reply = () => resolve({}); });
  await testServer.emit({ type: "ledger", key: "objects:3" });
  await openPage(objectPath("objects:3"), async (page) => {
    await page.locator(".lane .badge").getByText("Running", { exact: true }).first().waitFor();
    reply();
    await page.getByText("No open tasks for this object.").waitFor();
  });
});

test("objects: an object without events is reported as such, and a tenant token sees its own objects", async () => {
  await openPage(objectPath(`none ${HOSTILE_TEXT}`), async (page) => {
    await page.getByText("No events", { exact: true }).waitFor();
    await checkScreen(page, "object-unknown");
    await page.getByLabel("Tenant").fill("shop");
    await page.waitForFunction(() => location.hash.endsWith("?tenant=shop"));
    await page.getByText("No event of the tenant shop").waitFor();
  }, { expectedErrors: /404/ });
  await openPage(objectPath("theirs:1"), async (page) => {
    await eventRows(page).first().waitFor();
    assert.equal(await page.getByLabel("Tenant").count(), 0);
    await page.getByText("tenant shop").waitFor();
  }, { role: "shop" });
});
