// Orders: the list, the timeline, and the commands.

import assert from "node:assert/strict";
import { test } from "node:test";
import { navigateTo, checkScreen, openPage } from "./browser.mjs";
import { HOSTILE_TEXT, testServer } from "./test-server.mjs";

const readOrder = (id) => testServer.get(`/api/v1/orders/publish/article,${id}`);
const listOrdersWithPath = (id) => testServer.get(`/api/v1/orders?path=/publish/article,${id}`);

test("orders: the list is filtered and updated live", async () => {
  await openPage("/orders", async (page) => {
    await page.getByRole("row").filter({ hasText: "118" }).getByText("Retrying").waitFor();
    await page.getByRole("row").filter({ hasText: "119" }).getByText("Suspended").waitFor();
    await page.getByText(HOSTILE_TEXT.slice(0, 15)).first().waitFor();
    await checkScreen(page, "orders");
    await page.getByLabel("State").selectOption("Suspended");
    await page.getByRole("link", { name: "118", exact: true }).waitFor({ state: "detached" });
    await page.getByRole("link", { name: "119", exact: true }).waitFor();
    await page.getByLabel("State").selectOption("");
    await page.getByLabel("Chain or folder").fill("/publish/idle");
    await page.getByText("No orders").waitFor();
    await page.getByRole("button", { name: "Clear" }).click();
    await page.getByRole("link", { name: "119", exact: true }).waitFor();
    await testServer.post("/api/v1/orders", { path: "/publish/article,listed-1", delay: "1h", value: { [HOSTILE_TEXT]: HOSTILE_TEXT } });
    await page.getByRole("row").filter({ hasText: "listed-1" }).getByText("Planned").waitFor();
    await testServer.delete("/api/v1/orders/publish/article,listed-1");
    await page.getByRole("link", { name: "listed-1" }).waitFor({ state: "detached" });
  }, { role: "viewer" });
});

test("orders: a finished order is shown from its journal events", async () => {
  await openPage("/orders/publish/article,117", async (page) => {
    await page.getByText("Finished at done", { exact: true }).waitFor();
    const timeline = page.getByRole("group", { name: "Timeline of /publish/article,117" });
    await timeline.getByRole("button", { name: /render: step succeeded/ }).waitFor();
    await timeline.getByRole("button", { name: /deploy: step succeeded/ }).waitFor();
    await timeline.getByRole("img", { name: /done: finished/ }).waitFor();
    assert.equal(await page.getByRole("button", { name: "Suspend" }).count(), 0);
    await checkScreen(page, "order-finished");
    await page.getByRole("button", { name: "Copy as" }).click();
    await page.getByText("tasks list --key /publish/article,117").waitFor();
    await page.keyboard.press("Escape");
    await navigateTo(page, "/orders/publish/article,unknown");
    await page.getByText("the journal has no events of it").waitFor();
  });
});

test("orders: a set-back order shows its retry time, and its failed step links to the task", async () => {
  await openPage("/orders/publish/article,118", async (page) => {
    await page.getByText("will be retried at").waitFor();
    await page.getByText('"It fails"').waitFor();
    await checkScreen(page, "order");
    await page.getByRole("button", { name: /deploy: step failed, will be retried/ }).first().press("Enter");
    await page.waitForFunction(() => location.hash.startsWith("#/tasks/deploy_deploy_"));
  });
});

test("orders: an operator suspends, changes, resumes and removes an order", async () => {
  await testServer.post("/api/v1/orders", { path: "/publish/article,changed-1", delay: "1h", value: { title: HOSTILE_TEXT, long: 1 } });
  await openPage("/orders/publish/article,changed-1", async (page) => {
    await page.getByText("Planned", { exact: true }).first().waitFor();
    await page.getByRole("button", { name: "Suspend" }).click();
    await page.getByText("Suspended: the order starts no step").waitFor();
    assert.equal((await readOrder("changed-1")).suspended, true);

    await page.getByRole("button", { name: "Change" }).click();
    await page.getByRole("dialog").getByLabel("Value").fill(`{"title": "better", "long": 12345678901234567890}`);
    await page.getByRole("dialog").getByLabel("Node").selectOption("deploy");
    await page.getByRole("dialog").getByLabel("Not before").fill("soon");
    await page.getByText("Not a time").waitFor();
    await page.getByRole("dialog").getByLabel("Not before").fill("2099-01-31T12:00:00Z");
    await page.getByRole("dialog").getByRole("button", { name: "Change" }).click();
    await page.getByText("12345678901234567890").waitFor();
    await page.getByText("at deploy").first().waitFor();
    const changed = await readOrder("changed-1");
    assert.deepEqual([changed.node, changed.value.title, changed.planned_at.slice(0, 10)], ["deploy", "better", "2099-01-31"]);
    const raw = await fetch(`${testServer.url}/api/v1/orders/publish/article,changed-1`, { headers: { authorization: `Bearer ${testServer.tokens.admin}` } });
    assert.match(await raw.text(), /12345678901234567890/, "long numbers keep their digits");

    await page.getByRole("button", { name: "Change" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Change" }).click();
    await page.getByText("Nothing was changed").waitFor();

    await page.getByRole("button", { name: "Resume" }).click();
    await page.getByRole("button", { name: "Suspend" }).waitFor();
    assert.equal((await readOrder("changed-1")).suspended, false);
    await page.getByRole("button", { name: "Remove" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Dismiss" }).click();
    assert.equal((await listOrdersWithPath("changed-1")).orders.length, 1);
    await page.getByRole("button", { name: "Remove" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Remove" }).click();
    await page.getByText("Removed", { exact: true }).waitFor();
    assert.equal((await listOrdersWithPath("changed-1")).orders.length, 0);
    const { entries } = await testServer.get("/api/v1/audit?limit=4");
    assert.deepEqual(entries.map(({ action }) => action), ["remove", "resume", "change", "suspend"]);
  }, { role: "operator" });
});

test("orders: a failed step without on_error suspends the order; resume retries it", async () => {
  const { render } = testServer.target.replies;
  testServer.target.replies.render = () => ({ status: 422, body: { log: [`no ink ${HOSTILE_TEXT}`] } });
  try {
    await testServer.post("/api/v1/orders", { path: "/publish/idle,fails-1", value: { n: 1 } });
    await openPage("/orders/publish/idle,fails-1", async (page) => {
      await page.getByText("Its step at render failed").waitFor();
      await page.getByText("Failed", { exact: true }).first().waitFor();
      await checkScreen(page, "order-failed");
      testServer.target.replies.render = render;
      await page.getByRole("button", { name: "Resume" }).click();
      await page.getByText("Finished at done", { exact: true }).waitFor();
      assert.equal((await testServer.get("/api/v1/orders?path=/publish/idle")).orders.length, 0);
    });
  } finally {
    testServer.target.replies.render = render;
  }
});

test("orders: a running order cannot be changed or removed; a viewer has no actions", async () => {
  const { render } = testServer.target.replies;
  testServer.target.replies.render = testServer.target.replies.slow;
  try {
    await testServer.post("/api/v1/orders", { path: "/publish/idle,runs-1" });
    await openPage("/orders/publish/idle,runs-1", async (page) => {
      await page.getByText("Running", { exact: true }).first().waitFor();
      for (const name of ["Change", "Remove"]) assert.ok(await page.getByRole("button", { name }).isDisabled(), name);
      await openPage("/orders/publish/idle,runs-1", async (other) => {
        await other.getByText("Running", { exact: true }).first().waitFor();
        for (const name of ["Suspend", "Change", "Remove"]) assert.equal(await other.getByRole("button", { name }).count(), 0, name);
      }, { role: "viewer" });
      testServer.target.release();
      await page.getByText("Finished at done", { exact: true }).waitFor();
    });
  } finally {
    testServer.target.replies.render = render;
    testServer.target.release();
  }
});

test("orders: an order that ended through on_error is shown as failed", async () => {
  const { render } = testServer.target.replies;
  testServer.target.replies.render = () => ({ status: 422, body: { log: ["no paper"] } });
  try {
    await testServer.post("/api/v1/orders", { path: "/publish/article,errs-1", value: { n: 1 } });
    await openPage("/orders/publish/article,errs-1", async (page) => {
      await page.locator(".screen-subtitle .badge.bad").getByText("Failed at failed").waitFor();
      const end = page.getByRole("group", { name: "Timeline of /publish/article,errs-1" }).getByRole("img", { name: /failed: ended after an error/ });
      await end.locator(".bar.bad").waitFor();
      await page.getByText("step of order errs-1 failed with return code").first().waitFor();
      await checkScreen(page, "order-ended-failed");
    });
  } finally {
    testServer.target.replies.render = render;
  }
});

test("orders: the list and the chain page show why an order is on hold, and its full id", async () => {
  await testServer.put("/api/v1/chains/publish/article/nodes/deploy/action", { action: "stop" });
  try {
    const { orders: [{ path }] } = await testServer.post("/api/v1/orders", { path: "/publish/article", value: { n: 2 } });
    const id = path.split(",")[1];
    assert.match(id, /^\d{16}$/);
    await testServer.waitUntil(`/api/v1/orders?path=${path}`, ({ orders }) => orders[0]?.node === "deploy" && orders[0].blocked_by);
    for (const screen of ["/orders", "/chains/publish/article"]) {
      await openPage(screen, async (page) => {
        const row = page.getByRole("row").filter({ hasText: id });
        await row.getByText("On hold").waitFor();
        await row.getByText(/node deploy.* stopped/).waitFor();
        const cell = row.locator("td").first();
        assert.ok(await cell.evaluate((element) => element.scrollWidth <= element.clientWidth), `the id is truncated on ${screen}`);
      }, { role: "viewer" });
    }
    await openPage(`/orders${path}`, async (page) => {
      await page.getByText("On hold").waitFor();
      const properties = page.getByRole("region", { name: "Order", exact: true });
      await properties.getByText("Planned for").or(properties.getByText("Added")).first().waitFor();
      assert.equal(await properties.getByText(/Step (begins|due)/).count(), 0, "a step that has not started has no start time");
      const [suspended, waiting] = await Promise.all(["off", "idle"].map((tone) => page.locator(`.swatch.${tone}`).evaluate((element) => getComputedStyle(element).borderTopStyle)));
      assert.notEqual(suspended, waiting, "suspended and waiting differ by more than a shade");
      await checkScreen(page, "order-on-hold");
    });
    await openPage("/chains/publish/article", async (page) => {
      const rules = page.getByRole("region", { name: "Pauses and blocks" });
      await rules.getByText("Node deploy is stopped").waitFor();
      assert.equal(await rules.getByText("Not paused or blocked").count(), 0);
    });
    await testServer.delete(`/api/v1/orders${path}`);
  } finally {
    await testServer.put("/api/v1/chains/publish/article/nodes/deploy/action", { action: "process" });
  }
});
