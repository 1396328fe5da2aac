// Orders: the list, the way of one, and what people do to it.

import assert from "node:assert/strict";
import { test } from "node:test";
import { goTo, look, visit } from "./browser.mjs";
import { EVIL, world } from "./world.mjs";

const order = (id) => world.get(`/api/v1/orders/publish/article,${id}`);
const listed = (id) => world.get(`/api/v1/orders?path=/publish/article,${id}`);

test("orders: the list is narrowed, and follows what happens", async () => {
  await visit("/orders", async (page) => {
    await page.getByRole("row").filter({ hasText: "118" }).getByText("Retrying").waitFor();
    await page.getByRole("row").filter({ hasText: "119" }).getByText("Suspended").waitFor();
    await page.getByText(EVIL.slice(0, 15)).first().waitFor();
    await look(page, "orders");
    await page.getByLabel("State").selectOption("Suspended");
    await page.getByRole("link", { name: "118", exact: true }).waitFor({ state: "detached" });
    await page.getByRole("link", { name: "119", exact: true }).waitFor();
    await page.getByLabel("State").selectOption("");
    await page.getByLabel("Chain or folder").fill("/publish/idle");
    await page.getByText("No orders").waitFor();
    await page.getByRole("button", { name: "Clear" }).click();
    await page.getByRole("link", { name: "119", exact: true }).waitFor();
    await world.post("/api/v1/orders", { path: "/publish/article,listed-1", delay: "1h", value: { [EVIL]: EVIL } });
    await page.getByRole("row").filter({ hasText: "listed-1" }).getByText("Planned").waitFor();
    await world.delete("/api/v1/orders/publish/article,listed-1");
    await page.getByRole("link", { name: "listed-1" }).waitFor({ state: "detached" });
  }, { role: "viewer" });
});

test("orders: one that has arrived is remembered by the journal, step by step", async () => {
  await visit("/orders/publish/article,117", async (page) => {
    await page.getByText("Arrived at done").waitFor();
    const way = page.getByRole("group", { name: "Timeline of /publish/article,117" });
    await way.getByRole("button", { name: /render: step succeeded/ }).waitFor();
    await way.getByRole("button", { name: /deploy: step succeeded/ }).waitFor();
    await way.getByRole("img", { name: /done: arrived/ }).waitFor();
    assert.equal(await page.getByRole("button", { name: "Suspend" }).count(), 0);
    await look(page, "order-arrived");
    await page.getByRole("button", { name: "Copy as" }).click();
    await page.getByText("tasks list --key /publish/article,117").waitFor();
    await page.keyboard.press("Escape");
    await goTo(page, "/orders/publish/article,never-there");
    await page.getByText("the journal has no events of it").waitFor();
  });
});

test("orders: one that was set back says until when, and its failed step leads to its task", async () => {
  await visit("/orders/publish/article,118", async (page) => {
    await page.getByText("will be retried at").waitFor();
    await page.getByText('"It fails"').waitFor();
    await look(page, "order");
    await page.getByRole("button", { name: /deploy: step failed, will be retried/ }).first().press("Enter");
    await page.waitForFunction(() => location.hash.startsWith("#/tasks/deploy_deploy_"));
  });
});

test("orders: an operator suspends, changes, resumes and removes one", async () => {
  await world.post("/api/v1/orders", { path: "/publish/article,steered-1", delay: "1h", value: { title: EVIL, long: 1 } });
  await visit("/orders/publish/article,steered-1", async (page) => {
    await page.getByText("Planned", { exact: true }).first().waitFor();
    await page.getByRole("button", { name: "Suspend" }).click();
    await page.getByText("Suspended: the order starts no step").waitFor();
    assert.equal((await order("steered-1")).suspended, true);

    await page.getByRole("button", { name: "Change" }).click();
    await page.getByRole("dialog").getByLabel("Value").fill(`{"title": "better", "long": 12345678901234567890}`);
    await page.getByRole("dialog").getByLabel("Node").selectOption("deploy");
    await page.getByRole("dialog").getByLabel("Not before").fill("soon");
    await page.getByText("Not a time").waitFor();
    await page.getByRole("dialog").getByLabel("Not before").fill("2099-01-31T12:00:00Z");
    await page.getByRole("dialog").getByRole("button", { name: "Change" }).click();
    await page.getByText("12345678901234567890").waitFor();
    await page.getByText("at deploy").first().waitFor();
    const changed = await order("steered-1");
    assert.deepEqual([changed.node, changed.value.title, changed.planned_at.slice(0, 10)], ["deploy", "better", "2099-01-31"]);
    const raw = await fetch(`${world.url}/api/v1/orders/publish/article,steered-1`, { headers: { authorization: `Bearer ${world.tokens.admin}` } });
    assert.match(await raw.text(), /12345678901234567890/, "long numbers keep their digits");

    await page.getByRole("button", { name: "Change" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Change" }).click();
    await page.getByText("Nothing was changed").waitFor();

    await page.getByRole("button", { name: "Resume" }).click();
    await page.getByRole("button", { name: "Suspend" }).waitFor();
    assert.equal((await order("steered-1")).suspended, false);
    await page.getByRole("button", { name: "Remove" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Dismiss" }).click();
    assert.equal((await listed("steered-1")).orders.length, 1);
    await page.getByRole("button", { name: "Remove" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Remove" }).click();
    await page.getByText("Removed", { exact: true }).waitFor();
    assert.equal((await listed("steered-1")).orders.length, 0);
    const { deeds } = await world.get("/api/v1/audit?limit=4");
    assert.deepEqual(deeds.map(({ action }) => action), ["remove", "resume", "change", "suspend"]);
  }, { role: "operator" });
});

test("orders: a failed step suspends one where no other way is; resume tries again", async () => {
  const { render } = world.target.replies;
  world.target.replies.render = () => ({ status: 422, body: { log: [`no ink ${EVIL}`] } });
  try {
    await world.post("/api/v1/orders", { path: "/publish/idle,fails-1", value: { n: 1 } });
    await visit("/orders/publish/idle,fails-1", async (page) => {
      await page.getByText("Its step at render failed").waitFor();
      await page.getByText("Failed", { exact: true }).first().waitFor();
      await look(page, "order-failed");
      world.target.replies.render = render;
      await page.getByRole("button", { name: "Resume" }).click();
      await page.getByText("Arrived at done").waitFor();
      assert.equal((await world.get("/api/v1/orders?path=/publish/idle")).orders.length, 0);
    });
  } finally {
    world.target.replies.render = render;
  }
});

test("orders: while a step runs it is neither changed nor removed; a viewer does nothing at all", async () => {
  const { render } = world.target.replies;
  world.target.replies.render = world.target.replies.slow;
  try {
    await world.post("/api/v1/orders", { path: "/publish/idle,runs-1" });
    await visit("/orders/publish/idle,runs-1", async (page) => {
      await page.getByText("Running", { exact: true }).first().waitFor();
      for (const name of ["Change", "Remove"]) assert.ok(await page.getByRole("button", { name }).isDisabled(), name);
      await visit("/orders/publish/idle,runs-1", async (other) => {
        await other.getByText("Running", { exact: true }).first().waitFor();
        for (const name of ["Suspend", "Change", "Remove"]) assert.equal(await other.getByRole("button", { name }).count(), 0, name);
      }, { role: "viewer" });
      world.target.release();
      await page.getByText("Arrived at done").waitFor();
    });
  } finally {
    world.target.replies.render = render;
    world.target.release();
  }
});
