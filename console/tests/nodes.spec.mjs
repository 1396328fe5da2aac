// Nodes: who is alive, what each does and can do.

import assert from "node:assert/strict";
import { test } from "node:test";
import { look, visit } from "./browser.mjs";
import { world } from "./world.mjs";

/** Lets all end that run, also those that begin when others have ended. */
const idle = () => world.until("/api/v1/nodes", ({ nodes }) => {
  world.target.release();
  return nodes[0].running === 0;
});

test("nodes: the one that lives, its slots as they fill, and what it can run", async () => {
  await visit("/nodes", async (page) => {
    const { nodes } = await world.get("/api/v1/nodes");
    const row = page.getByRole("row").filter({ hasText: nodes[0].name });
    await row.getByText("Alive").waitFor();
    await page.getByRole("list").getByRole("link", { name: "render" }).waitFor();
    await idle();
    await row.getByText("0 of 16").waitFor();
    await world.emit({ type: "slow", key: "slow:nodes" });
    await row.getByText("1 of 16").waitFor();
    await look(page, "nodes");
    await idle();
    await row.getByText("0 of 16").waitFor();
  }, { role: "viewer" });
});

test("nodes: one that was replaced is gone; what nobody can run is told", async () => {
  await world.down();
  await world.up();
  const { nodes } = await world.get("/api/v1/nodes");
  assert.ok(nodes.some((node) => !node.alive) && nodes.some((node) => node.alive));
  await visit("/nodes", async (page) => {
    await page.getByText("Gone").first().waitFor();
    await page.getByRole("row").filter({ hasText: "Alive" }).click();
    await page.getByText("Can run", { exact: true }).last().waitFor();
    assert.match(await page.evaluate(() => location.hash), /node=\d+/);
    await look(page, "nodes-two");
  });
});
