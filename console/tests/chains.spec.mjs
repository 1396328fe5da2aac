// Chains: the graph, moving orders, and the actions on chains and nodes.

import assert from "node:assert/strict";
import { test } from "node:test";
import { layoutChain } from "../screens/chains/layout.js";
import { checkScreen, openPage } from "./browser.mjs";
import { HOSTILE_TEXT, testServer } from "./test-server.mjs";

const ARTICLE_CHAIN_SCREEN = "/chains/publish/article";
const readArticleChain = () => testServer.get("/api/v1/chains/publish/article");
const nodeLocator = (page, name) => page.locator(".chain-node").filter({ has: page.locator(".node-id", { hasText: new RegExp(`^${name}$`) }) });
const nodeStateLabel = (page, name, label) => nodeLocator(page, name).locator(".node-handler", { hasText: label });

test("chains: the layout puts nodes in layers without overlaps, and handles cycles", () => {
  const sizes = { along: 100, across: 40, gapAlong: 50, gapAcross: 20 };
  const nextEdge = (from, to) => ({ from, to, kind: "next" });
  const errorEdge = (from, to) => ({ from, to, kind: "error" });
  const acyclic = layoutChain(["a", "b", "done", "failed"], [nextEdge("a", "b"), errorEdge("a", "failed"), nextEdge("b", "done"), errorEdge("b", "failed")], sizes);
  const nodesById = Object.fromEntries(acyclic.nodes.map((node) => [node.id, node]));
  assert.deepEqual(acyclic.nodes.map(({ id, layer }) => [id, layer]), [["a", 0], ["b", 1], ["done", 2], ["failed", 2]]);
  assert.ok(nodesById.a.across === nodesById.b.across && nodesById.b.across === nodesById.done.across, "nodes on next edges are aligned");
  assert.equal(acyclic.edges.find((edge) => edge.from === "a" && edge.to === "failed").points.length, 3, "the edge has a waypoint in the skipped layer");

  const cyclic = layoutChain(["a", "b", "c"], [nextEdge("a", "b"), nextEdge("b", "c"), errorEdge("c", "a"), errorEdge("b", "b")], sizes);
  assert.deepEqual(cyclic.edges.filter((edge) => edge.isBack).map(({ from, to }) => [from, to]), [["c", "a"], ["b", "b"]]);

  const ids = Array.from({ length: 60 }, (_, n) => `n${n}`);
  const large = layoutChain(ids, ids.flatMap((id, n) => [nextEdge(id, ids[Math.min(59, n + 1 + (n % 3))]), errorEdge(id, ids[(n * 17) % 60])]), sizes);
  assert.equal(large.nodes.length, 60);
  for (const a of large.nodes) {
    for (const b of large.nodes) {
      if (a !== b && a.layer === b.layer) assert.ok(Math.abs(a.across - b.across) >= sizes.across, `${a.id} and ${b.id} overlap`);
    }
  }
});

test("chains: the list shows order counts per node", async () => {
  await openPage("/chains", async (page) => {
    const row = page.getByRole("row").filter({ hasText: "/publish/article" });
    await row.getByText("Running").waitFor();
    await row.locator(".node-chip").filter({ hasText: "deploy" }).waitFor();
    await checkScreen(page, "chains");
    await page.getByLabel("Path").fill("idle");
    await row.waitFor({ state: "detached" });
    await page.getByLabel("State").selectOption("stopped");
    await page.getByText("No chain matches").waitFor();
  }, { role: "viewer" });
});

test("chains: a node is selected in the graph, stopped and processed again", async () => {
  await openPage(ARTICLE_CHAIN_SCREEN, async (page) => {
    await nodeLocator(page, "render").waitFor();
    assert.equal(await page.locator(".edge.error").count(), 2);
    await nodeLocator(page, "deploy").click();
    await page.getByRole("heading", { name: "Node deploy" }).waitFor();
    assert.match(await page.evaluate(() => location.hash), /node=deploy/);
    await page.getByText("3 times, after 1 h, fixed").waitFor();
    await checkScreen(page, "chain");
    await page.getByRole("group", { name: "Node action" }).getByRole("button", { name: "Stop" }).click();
    await nodeStateLabel(page, "deploy", "stopped").waitFor();
    assert.equal((await readArticleChain()).nodes[1].action, "stop");

    await page.getByRole("button", { name: "Add an order" }).click();
    await page.getByRole("dialog").getByLabel("Id").fill("picture-1");
    await page.getByRole("dialog").getByLabel("Value").fill("{not json");
    await page.getByText("Not JSON").waitFor();
    await page.getByRole("dialog").getByLabel("Value").fill(JSON.stringify({ title: HOSTILE_TEXT }));
    await page.getByRole("dialog").getByRole("button", { name: "Add" }).click();
    await page.getByRole("heading", { name: "/publish/article,picture-1" }).waitFor();
    const order = await testServer.waitUntil("/api/v1/orders/publish/article,picture-1", ({ node }) => node === "deploy");
    assert.equal(order.value.title, HOSTILE_TEXT);
    await page.getByText("On hold").first().waitFor();
    await page.goBack();
    await page.getByRole("heading", { name: "Orders at deploy" }).waitFor();
    await page.getByRole("link", { name: "picture-1" }).waitFor();
    await page.getByRole("group", { name: "Node action" }).getByRole("button", { name: "Process" }).click();
    await page.getByRole("link", { name: "picture-1" }).waitFor({ state: "detached" });
    assert.equal((await readArticleChain()).nodes[1].action, "process");
    await testServer.waitUntil("/api/v1/orders?path=/publish/article,picture-1", ({ orders }) => orders.length === 0);
  });
});

test("chains: skipping a node needs a confirmation", async () => {
  await openPage(`${ARTICLE_CHAIN_SCREEN}?node=deploy`, async (page) => {
    const actions = page.getByRole("group", { name: "Node action" });
    await actions.getByRole("button", { name: "Skip" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Dismiss" }).click();
    assert.equal((await readArticleChain()).nodes[1].action, "process");
    // With the node skipped, waiting orders would move on: the set-back one is suspended.
    await testServer.post("/api/v1/orders/publish/article,118/suspend");
    await actions.getByRole("button", { name: "Skip" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Skip node" }).click();
    await nodeStateLabel(page, "deploy", "skipped").waitFor();
    assert.equal((await readArticleChain()).nodes[1].action, "next_state");
    await checkScreen(page, "chain-skipped");
    await actions.getByRole("button", { name: "Process" }).click();
    await nodeStateLabel(page, "deploy", "skipped").waitFor({ state: "detached" });
    assert.equal((await readArticleChain()).nodes[1].action, "process");
    await testServer.post("/api/v1/orders/publish/article,118/resume");
  }, { role: "operator" });
});

test("chains: a chain is stopped and started, paused and resumed", async () => {
  await openPage(ARTICLE_CHAIN_SCREEN, async (page) => {
    await page.getByRole("button", { name: "Stop", exact: true }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Stop" }).click();
    await page.getByText("Stopped", { exact: true }).waitFor();
    assert.equal((await readArticleChain()).state, "stopped");
    await page.getByRole("button", { name: "Start", exact: true }).click();
    await page.getByText("Stopped", { exact: true }).waitFor({ state: "detached" });
    assert.equal((await readArticleChain()).state, "running");
    await page.getByRole("button", { name: "Pause" }).click();
    await page.getByLabel("Reason").fill(HOSTILE_TEXT);
    await page.getByLabel("Tenant").fill("shop");
    await page.getByRole("dialog").getByRole("button", { name: "Pause" }).click();
    await page.getByText("for the tenant shop").waitFor();
    assert.deepEqual((await readArticleChain()).rules.map(({ tenant, reason }) => [tenant, reason]), [["shop", HOSTILE_TEXT]]);
    await page.getByRole("button", { name: "Resume" }).click();
    await page.getByText("Not paused or blocked.").waitFor();
    assert.deepEqual((await readArticleChain()).rules, []);
  });
});

test("chains: orders move in the graph", async () => {
  await openPage(ARTICLE_CHAIN_SCREEN, async (page) => {
    await page.emulateMedia({ reducedMotion: "no-preference" });
    await nodeLocator(page, "render").waitFor();
    await page.getByText("Live", { exact: true }).waitFor();
    const dotShown = page.locator(".moving-order circle").first().waitFor({ state: "attached" });
    await testServer.post("/api/v1/orders", [1, 2, 3].map((n) => ({ path: `/publish/article,moves-${n}` })));
    await dotShown;
    await page.locator(".moving-order").first().waitFor({ state: "detached" });
    await testServer.put("/api/v1/chains/publish/article/nodes/render/action", { action: "stop" });
    await testServer.post("/api/v1/orders", Array.from({ length: 4 }, (_, n) => ({ path: `/publish/article,waits-${n}` })));
    const before = (await readArticleChain()).nodes[0].orders;
    await nodeLocator(page, "render").locator(".node-count", { hasText: String(before) }).waitFor();
    for (let n = 0; n < 4; n += 1) await testServer.delete(`/api/v1/orders/publish/article,waits-${n}`);
    await testServer.put("/api/v1/chains/publish/article/nodes/render/action", { action: "process" });
    await nodeStateLabel(page, "render", "stopped").waitFor({ state: "detached" });
  });
});

test("chains: a viewer has no actions, and a tenant token only those of its tenant", async () => {
  await openPage(`${ARTICLE_CHAIN_SCREEN}?node=deploy`, async (page) => {
    await page.getByRole("heading", { name: "Node deploy" }).waitFor();
    for (const name of ["Stop", "Pause", "Block", "Add an order", "Skip"]) assert.equal(await page.getByRole("button", { name, exact: true }).count(), 0, name);
  }, { role: "viewer" });
  await openPage(`${ARTICLE_CHAIN_SCREEN}?node=deploy`, async (page) => {
    await page.getByRole("button", { name: "Pause" }).waitFor();
    for (const name of ["Stop", "Skip"]) assert.equal(await page.getByRole("button", { name, exact: true }).count(), 0, name);
    await page.getByText("No orders").waitFor();
  }, { role: "shop" });
});
