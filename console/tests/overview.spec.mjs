// The overview: attention list, backlog and rates.

import assert from "node:assert/strict";
import { test } from "node:test";
import { checkScreen, openPage } from "./browser.mjs";
import { HOSTILE_TEXT, testServer } from "./test-server.mjs";

test("overview: the attention list is updated live", async () => {
  await openPage("/overview", async (page) => {
    const attention = page.getByRole("region", { name: "Needs attention" });
    await attention.getByText("busy is paused").waitFor();
    await attention.getByText(`for the tests ${HOSTILE_TEXT}`, { exact: false }).waitFor();
    await attention.getByText(/of strict (is|are) halted/).waitFor();
    await testServer.put("/api/v1/handlers/quick/block", { reason: "a test" });
    await attention.getByText("quick is blocked").waitFor();
    await testServer.delete("/api/v1/handlers/quick/block");
    await attention.getByText("quick is blocked").waitFor({ state: "detached" });
  });
});

test("overview: the backlog equals that of the API, and failures appear live", async () => {
  await openPage("/overview", async (page) => {
    const table = page.getByRole("region", { name: "Backlog by handler" }).last();
    const row = table.locator("tr", { has: page.getByText("slow", { exact: true }) });
    await row.waitFor();
    const { handlers } = await testServer.get("/api/v1/handlers");
    const { counts } = handlers.find(({ name }) => name === "slow");
    const cells = await row.locator("td").allInnerTexts();
    assert.deepEqual([cells[3], cells[5]], [String(counts.ready + counts.scheduled), String(counts.running)]);
    assert.equal(await table.locator("tbody tr:not(.spacer-row)").count(), handlers.length);
    await testServer.emit({ type: "flaky", key: "overview:1" });
    await page.getByRole("region", { name: "Latest failed tasks" }).getByText("overview:1").waitFor();
    await page.locator(".u-wrap").nth(1).waitFor();
    await page.waitForFunction(() => [...document.querySelectorAll(".tile-value")].filter((tile) => tile.textContent !== "–").length >= 6);
    await checkScreen(page, "overview");
  });
});

test("overview: tasks of paused handlers are not counted as ready", async () => {
  const countReady = async (isIncluded) => (await testServer.get("/api/v1/handlers")).handlers.filter(isIncluded).reduce((sum, { counts }) => sum + counts.ready + counts.scheduled, 0);
  await testServer.put("/api/v1/handlers/quick/pause", {});
  await testServer.emit([1, 2, 3].map((n) => ({ type: "quick", key: `paused:${n}` })));
  assert.equal(await countReady(({ name }) => name === "quick"), 3);
  await openPage("/overview", async (page) => {
    await page.getByText(`${await countReady(({ rules }) => rules.length === 0)} ready`).waitFor();
  });
  await testServer.delete("/api/v1/handlers/quick/pause");
});

test("overview: a stopped node needs attention, and its tasks are not ready", async () => {
  await testServer.put("/api/v1/chains/publish/idle/nodes/render/action", { action: "stop" });
  await testServer.post("/api/v1/orders", [1, 2].map((n) => ({ path: `/publish/idle,stopped-${n}` })));
  await testServer.waitUntil("/api/v1/handlers/render", ({ counts }) => counts.ready + counts.scheduled === 2);
  const { handlers } = await testServer.get("/api/v1/handlers");
  const readyTaskCount = handlers.flatMap(({ queues }) => queues).filter((queue) => !queue.held).reduce((sum, queue) => sum + queue.ready + queue.scheduled, 0);
  await openPage("/overview", async (page) => {
    const item = page.getByRole("region", { name: "Needs attention" }).getByRole("listitem").filter({ hasText: "Node render of /publish/idle is stopped" });
    await item.getByText("2 orders wait there").waitFor();
    await page.getByText(`${readyTaskCount} ready`, { exact: true }).waitFor();
    const row = page.getByRole("region", { name: "Backlog by handler" }).last().locator("tr", { has: page.getByText("render", { exact: true }) });
    const cells = await row.locator("td").allInnerTexts();
    assert.deepEqual([cells[1], cells[3], cells[4]], ["On hold", "0", "2"]);
    await checkScreen(page, "overview-stopped");
  });
  await testServer.put("/api/v1/chains/publish/idle/nodes/render/action", { action: "process" });
});

test("overview: throughput is measured", async () => {
  await openPage("/overview", async (page) => {
    await page.locator(".tile-value").first().waitFor();
    await page.waitForFunction(() => document.querySelector(".tile-value")?.textContent !== "–");
    for (let n = 0; n < 20; n += 1) await testServer.emit(Array.from({ length: 50 }, () => ({ type: "measured" })));
    // A thousand events over two seconds: most of them are in one sample.
    await page.waitForFunction(() => parseFloat(document.querySelector(".tile-value")?.textContent?.replace(",", "") ?? "0") > 20);
  });
});

test("overview: a tenant token sees its own data without refused calls", async () => {
  await openPage("/overview", async (page) => {
    await page.getByRole("heading", { name: "Overview" }).waitFor();
    await page.getByRole("region", { name: "Latest failed tasks" }).getByText("theirs:2").waitFor();
    assert.equal(await page.getByText("flaky:1").count(), 0);
    await page.waitForFunction(() => document.querySelector(".tile-value")?.textContent !== "–");
    await checkScreen(page, "overview-tenant");
  }, { role: "shop" });
});
