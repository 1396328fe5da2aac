// The task list: filters, live updates, bounded size, and bulk actions.

import assert from "node:assert/strict";
import { test } from "node:test";
import { countElements, checkScreen, openPage } from "./browser.mjs";
import { HOSTILE_TEXT, testServer } from "./test-server.mjs";

const rows = (page) => page.locator(".tasks .table-box tbody tr:not(.spacer-row)");
const listTasks = async (query) => (await testServer.get(`/api/v1/tasks?limit=1000&${new URLSearchParams(query)}`)).tasks;
const waitForTasks = (query, condition) => testServer.waitUntil(`/api/v1/tasks?limit=1000&${new URLSearchParams(query)}`, ({ tasks }) => condition(tasks));

/** Creates failing tasks of `draft` in their own tenant. */
async function createFailures(tenant, count, error = "no luck") {
  testServer.target.replies.draft = () => ({ status: 422, body: { log: [error] } });
  await testServer.emit(Array.from({ length: count }, (_, n) => ({ type: "draft", key: `draft:${n}`, tenant })));
  await waitForTasks({ tenant, status: "FAILED" }, (tasks) => tasks.length === count);
}

test("tasks: user texts are rendered as text, newest tasks first", async () => {
  await openPage("/tasks", async (page) => {
    await page.getByText("no luck <img").first().waitFor();
    await rows(page).first().waitFor();
    const shownIds = await page.locator("tbody td:last-child a").evaluateAll((links) => links.map((link) => link.title));
    assert.deepEqual(shownIds, (await listTasks({})).slice(0, shownIds.length).map((task) => task.id));
    await checkScreen(page, "tasks");
  });
});

test("tasks: all filters are in the address", async () => {
  await openPage("/tasks", async (page) => {
    await page.getByLabel("Status").selectOption("FAILED");
    await page.getByLabel("Handler").fill("flaky");
    await page.waitForFunction(() => location.hash === "#/tasks?status=FAILED&handler=flaky");
    await page.getByRole("button", { name: "More" }).click();
    const failedTasks = await listTasks({ status: "FAILED", handler: "flaky" });
    await page.getByText(`${failedTasks.length} match`).waitFor();
    const [{ collection, tenant, key, event_id: event, created_at }] = failedTasks;
    const query = { status: "error", source: "flaky", collection, tenant, key, event, start: created_at, end: new Date(Date.parse(created_at) + 60_000).toISOString() };
    await page.evaluate((hash) => { location.hash = hash; }, `/tasks?${new URLSearchParams(query)}`);
    await page.getByText("1 match").waitFor();
    assert.equal(await page.getByLabel("Source").inputValue(), "flaky");
    assert.match(await page.getByLabel("Created since").inputValue(), /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d/);
    await page.getByRole("button", { name: "Copy as" }).click();
    await page.getByRole("button", { name: /CLI/ }).click();
    assert.match(await page.evaluate(() => navigator.clipboard.readText()), /^pointsman tasks list --status error --source flaky --collection flaky /);
    await page.getByLabel("Created before").fill("2001-02-03T04:05:06");
    await page.getByText("The tasks could not be loaded").waitFor();
    await page.getByRole("button", { name: "Clear" }).click();
    await page.waitForFunction(() => location.hash === "#/tasks");
    await page.getByLabel("Object").fill(HOSTILE_TEXT);
    await page.waitForFunction(() => document.querySelectorAll(".tasks tbody tr:not(.spacer-row)").length === 1);
    await page.getByText("record.changed").waitFor();
    await page.getByLabel("Object").fill("unknown key");
    await page.getByText("No task matches").waitFor();
    await checkScreen(page, "tasks-none");
  }, { expectedErrors: /400/ });
});

test("tasks: the list is updated live", async () => {
  let reply;
  testServer.target.replies.draft = () => new Promise((resolve) => { reply = () => resolve({ status: 422, body: { log: ["in the end"] } }); });
  await openPage("/tasks?key=live:1", async (page) => {
    await page.getByText("No task matches").waitFor();
    await testServer.emit({ type: "draft", key: "live:1" });
    await rows(page).getByText("Running").waitFor();
    reply();
    await rows(page).getByText("Failed").waitFor();
    await page.getByText("in the end").waitFor();
    testServer.target.replies.draft = () => ({});
    const [{ id }] = await listTasks({ key: "live:1" });
    await testServer.post(`/api/v1/tasks/${id}/retry`);
    await rows(page).getByText("Succeeded").waitFor();
    await page.getByLabel("Status").selectOption("SUCCESS");
    await page.getByText("1 match").waitFor();
    assert.equal(await page.evaluate(() => performance.getEntriesByType("navigation").length), 1);
  });
});

test("tasks: selected tasks are run again and cancelled, and both can be undone", async () => {
  await createFailures("tasks-a", 2);
  await testServer.emit([1, 2].map((n) => ({ type: "scribe", key: `scribe:${n}`, tenant: "tasks-a" })));
  testServer.target.replies.draft = () => ({});
  await openPage("/tasks?tenant=tasks-a", async (page) => {
    await page.getByText("4 match").waitFor();
    // Two waiting tasks first, then two failed ones.
    for (const key of ["j", "x", "j", "j", "x", "j", "x"]) await page.keyboard.press(key);
    await page.getByText("3 tasks selected").waitFor();
    await checkScreen(page, "tasks-selected");
    await page.keyboard.press("r");
    await page.getByText("2 tasks will be run again").waitFor();
    await page.getByRole("button", { name: "Undo" }).click();
    await page.getByText("nothing was changed").waitFor();
    assert.deepEqual((await listTasks({ tenant: "tasks-a", handler: "draft" })).map((task) => task.attempt), [1, 1]);
    await page.keyboard.press("r");
    await waitForTasks({ tenant: "tasks-a", handler: "draft", status: "SUCCESS" }, (tasks) => tasks.length === 2 && tasks.every((task) => task.attempt === 2));
    await page.getByText("2 of 2").waitFor();
    await page.waitForFunction(() => [...document.querySelectorAll("tbody .badge")].filter((badge) => badge.textContent === "Succeeded").length === 2);
    await rows(page).first().getByRole("checkbox").check();
    await page.getByRole("button", { name: "Cancel 1" }).click();
    await page.getByText("1 task will be cancelled").waitFor();
    await waitForTasks({ tenant: "tasks-a", status: "CANCELED" }, (tasks) => tasks.length === 1);
    await rows(page).getByText("Cancelled").waitFor();
    await page.getByRole("button", { name: "Close" }).first().click();
  }, { role: "operator" });
});

test("tasks: refused actions are reported", async () => {
  await createFailures("tasks-refused", 1);
  await openPage("/tasks?tenant=tasks-refused", async (page) => {
    await rows(page).first().getByRole("checkbox").check();
    await page.getByRole("button", { name: "Cancel 1" }).click();
    await page.getByText(/1 refused: .*which does not allow this command/).waitFor();
  }, { expectedErrors: /409/ });
});

test("tasks: all matching tasks are cancelled", async () => {
  await testServer.emit(Array.from({ length: 220 }, (_, n) => ({ type: "scribe", key: `scribe:${n}`, tenant: "tasks-b" })));
  await openPage("/tasks?tenant=tasks-b&status=SCHEDULED", async (page) => {
    await page.getByText("200 loaded").waitFor();
    await page.getByLabel("Select all rows shown").check();
    await page.getByText("200 tasks selected").waitFor();
    await page.getByRole("button", { name: "Select all matching" }).click();
    await page.getByText("All matching tasks are selected").waitFor();
    await page.getByRole("button", { name: "Cancel…" }).click();
    const dialog = page.getByRole("dialog", { name: "Cancel all matching tasks" });
    await dialog.getByText("220 tasks").waitFor();
    await dialog.getByRole("button", { name: "Cancel 220" }).click();
    await page.getByText("220 tasks will be cancelled").waitFor();
    await waitForTasks({ tenant: "tasks-b", status: "CANCELED" }, (tasks) => tasks.length === 220);
    await page.getByText("220 of 220").waitFor();
    assert.equal((await listTasks({ tenant: "tasks-b", status: "SCHEDULED" })).length, 0);
    await page.getByText("No task matches").waitFor();
  });
});

test("tasks: a redrive is counted first, can be undone, and shows its progress", async () => {
  await createFailures("tasks-c", 6);
  await openPage("/tasks?tenant=tasks-c&handler=draft", async (page) => {
    const listRedrives = async () => (await testServer.get("/api/v1/redrives")).redrives.filter(({ filter }) => filter.tenant === "tasks-c");
    const openRedriveDialog = async () => {
      await page.getByRole("button", { name: "Redrive…" }).click();
      await page.getByRole("dialog", { name: "Redrive" }).getByText("6 tasks").waitFor();
    };
    await page.getByText("6 match").waitFor();
    await openRedriveDialog();
    await checkScreen(page, "redrive");
    await page.getByRole("dialog").getByLabel("Status").selectOption("CANCELED");
    await page.getByRole("dialog").getByText("No task matches").waitFor();
    await page.getByRole("dialog").getByLabel("Status").selectOption("FAILED");
    await page.getByLabel("Rate").fill("quick");
    await page.getByText("Write the rate like").waitFor();
    await page.getByLabel("Rate").fill("1/m");
    await page.getByRole("button", { name: "Run 6 again" }).click();
    await page.getByText("6 tasks will be run again: failed tasks of draft, tenant tasks-c").waitFor();
    await page.getByText(/in \d s/).waitFor();
    await page.getByRole("button", { name: "Undo" }).click();
    assert.deepEqual(await listRedrives(), []);
    await openRedriveDialog();
    await page.getByLabel("Rate").fill("1/m");
    await page.getByRole("button", { name: "Run 6 again" }).click();
    const progress = page.getByRole("group", { name: "Redrive of failed tasks of draft, tenant tasks-c" });
    await progress.getByText("1 of 6").waitFor();
    await checkScreen(page, "redrive-progress");
    await progress.getByRole("button", { name: "Stop" }).click();
    await progress.getByText("stopped: on request").waitFor();
    assert.deepEqual((await listRedrives()).map(({ state, retried }) => [state, retried]), [["stopped", 1]]);
    await progress.getByRole("button", { name: "Close" }).click();
    testServer.target.replies.draft = () => ({});
    await page.getByRole("button", { name: "Redrive…" }).click();
    await page.getByLabel("Canary optional").fill("2");
    await page.getByRole("button", { name: /Run \d again/ }).click();
    await testServer.waitUntil("/api/v1/redrives", ({ redrives }) => redrives[0].filter.tenant === "tasks-c" && redrives[0].state === "done");
    await waitForTasks({ tenant: "tasks-c", status: "FAILED" }, (tasks) => tasks.length === 0);
    await progress.getByText("done").waitFor();
    await page.waitForFunction(() => [...document.querySelectorAll("tbody .badge")].every((badge) => badge.textContent === "Succeeded"));
  }, { role: "operator" });
});

test("tasks: a role sees only its actions, and a tenant token only its tasks", async () => {
  await openPage("/tasks?handler=flaky", async (page) => {
    await rows(page).first().getByRole("checkbox").check();
    await page.getByText("1 task selected").waitFor();
    assert.equal(await page.getByRole("button", { name: /Redrive|Run|Cancel/ }).count(), 0);
  }, { role: "viewer" });
  await openPage("/tasks", async (page) => {
    await rows(page).first().waitFor();
    assert.equal(await page.getByLabel("Tenant").count(), 0);
    await page.getByText(`${(await listTasks({ tenant: "shop" })).length} match`).waitFor();
  }, { role: "shop" });
});

/** Replaces the server in the page: generates `count` matching tasks on request. @param {number} count */
function serveGeneratedTasks(count) {
  const originalFetch = window.fetch;
  const task = (n) => {
    const at = new Date(1_794_700_000_000 - n).toISOString();
    return { id: `many_made.up_00000000-0000-8000-8000-${String(n).padStart(12, "0")}`, source: "many", collection: "made.up", priority: 100, created_at: at, started_at: at, finished_at: at,
      status: "FAILED", state: "error", handler: "many", tenant: "default", key: `many:${n}`, event_id: 1_794_700_000_000_000 - n, retries: 0, attempt: 1, planned_at: "", delay_until: "", error: `number ${n}` };
  };
  window.requestCount = 0;
  window.fetch = async (path, options) => {
    if (!String(path).startsWith("/api/v1/tasks?")) return originalFetch(path, options);
    window.requestCount += 1;
    const query = new URL(path, location.href).searchParams;
    const from = Number(query.get("cursor") ?? 0);
    const to = Math.min(count, from + Number(query.get("limit")));
    const tasks = Array.from({ length: to - from }, (_, n) => task(from + n));
    return new Response(JSON.stringify({ eventId: 1, tasks, next: to < count ? String(to) : null }), { headers: { "content-type": "application/json" } });
  };
}

test("tasks: 100,000 matching tasks scroll with few rows in the page", async () => {
  await openPage("/tasks?handler=many", async (page) => {
    await page.addInitScript(serveGeneratedTasks, 100_000);
    await page.reload();
    await page.locator(".tasks .table-box tbody tr").first().waitFor();
    await page.evaluate(async () => {
      const box = document.querySelector(".tasks .table-box");
      const isComplete = () => document.querySelector(".screen-subtitle").textContent.includes("100,000 match");
      while (!isComplete()) {
        box.scrollTop = box.scrollHeight;
        await new Promise((resolve) => setTimeout(resolve, 10));
      }
      box.scrollTop = box.scrollHeight;
    });
    await page.getByText("number 99999").waitFor();
    const requestCount = await page.evaluate("requestCount");
    assert.ok(requestCount >= 100 && requestCount < 130, `${requestCount} pages were read`);
    const elementCount = await countElements(page);
    assert.ok(elementCount < 1500, `${elementCount} elements are in the page`);
    await page.evaluate(() => { document.querySelector(".tasks .table-box").scrollTop = 50_000 * 32; });
    await page.getByText("number 50002").waitFor();
    await page.keyboard.press("a");
    await page.getByText("All matching tasks are selected: 100,000").waitFor();
    await page.keyboard.press("Escape");
    await page.keyboard.press("j");
    await page.getByText("number 0", { exact: true }).waitFor();
  });
});

test("tasks: new tasks do not move the rows while scrolled down", async () => {
  await testServer.emit(Array.from({ length: 120 }, (_, n) => ({ type: "scribe", key: `scribe:${n}`, tenant: "tasks-d" })));
  await openPage("/tasks?tenant=tasks-d", async (page) => {
    await page.getByText("120 match").waitFor();
    await page.evaluate(() => { document.querySelector(".tasks .table-box").scrollTop = 60 * 32; });
    await page.getByText("scribe:59", { exact: true }).waitFor();
    const rowBox = () => page.getByText("scribe:59", { exact: true }).boundingBox();
    const rowOffsetBefore = (await rowBox()).y - (await page.locator(".tasks thead").boundingBox()).y;
    await testServer.emit({ type: "scribe", key: "scribe:new", tenant: "tasks-d" });
    await page.getByText("1 newer").waitFor();
    assert.equal((await rowBox()).y - (await page.locator(".tasks thead").boundingBox()).y, rowOffsetBefore);
    await page.getByRole("button", { name: "Show them" }).click();
    await page.getByText("scribe:new").waitFor();
    await page.getByText("121 match").waitFor();
  });
});
