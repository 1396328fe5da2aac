// Nodes: state, slots and handlers.

import assert from "node:assert/strict";
import { test } from "node:test";
import { checkScreen, openPage } from "./browser.mjs";
import { testServer } from "./test-server.mjs";

/** Releases running tasks until none is left. */
const releaseTasksUntilIdle = () => testServer.waitUntil("/api/v1/nodes", ({ nodes }) => {
  testServer.target.release();
  return nodes[0].running === 0;
});

test("nodes: a live node shows its slots and handlers", async () => {
  await openPage("/nodes", async (page) => {
    const { nodes } = await testServer.get("/api/v1/nodes");
    const row = page.getByRole("row").filter({ hasText: nodes[0].name });
    await row.getByText("Alive").waitFor();
    await page.getByRole("list").getByRole("link", { name: "render" }).waitFor();
    await releaseTasksUntilIdle();
    await row.getByText("0 of 16").waitFor();
    await testServer.emit({ type: "slow", key: "slow:nodes" });
    await row.getByText("1 of 16").waitFor();
    await checkScreen(page, "nodes");
    await releaseTasksUntilIdle();
    await row.getByText("0 of 16").waitFor();
  }, { role: "viewer" });
});

test("nodes: a stopped node is shown as gone", async () => {
  await testServer.stopProcess();
  await testServer.startProcess();
  const { nodes } = await testServer.get("/api/v1/nodes");
  assert.ok(nodes.some((node) => !node.alive) && nodes.some((node) => node.alive));
  await openPage("/nodes", async (page) => {
    await page.getByText("Gone").first().waitFor();
    await page.getByRole("row").filter({ hasText: "Alive" }).click();
    await page.getByText("Can run", { exact: true }).last().waitFor();
    assert.match(await page.evaluate(() => location.hash), /node=\d+/);
    await checkScreen(page, "nodes-gone");
  });
});
