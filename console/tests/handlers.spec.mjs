// Handlers and queues: states, pauses and blocks, missing tasks.

import assert from "node:assert/strict";
import { test } from "node:test";
import { checkAccessibility, navigateTo, checkScreen, openPage } from "./browser.mjs";
import { HOSTILE_TEXT, testServer } from "./test-server.mjs";

const readHandler = (name) => testServer.get(`/api/v1/handlers/${name}`);
const handlerRow = (page, name) => page.getByRole("row").filter({ has: page.getByRole("link", { name, exact: true }) });

test("handlers: the list shows states and is filtered by the address", async () => {
  await openPage("/handlers", async (page) => {
    await handlerRow(page, "busy").getByText("Paused").waitFor();
    await handlerRow(page, "strict").getByText("Halted").waitFor();
    await handlerRow(page, "slow").getByText("of 2").waitFor();
    await handlerRow(page, "shop").getByText("source").waitFor();
    await checkScreen(page, "handlers");
    await page.getByLabel("State").selectOption("held");
    await handlerRow(page, "slow").waitFor({ state: "detached" });
    await handlerRow(page, "busy").waitFor();
    assert.match(await page.evaluate(() => location.hash), /state=held/);
    await page.getByLabel("State").selectOption("");
    await page.getByLabel("Tenant").fill("shop");
    await page.getByLabel("Name").fill("fla");
    await handlerRow(page, "mail").waitFor({ state: "detached" });
    assert.match(await page.evaluate(() => location.hash), /tenant=shop/);
    await page.getByLabel("Name").fill("no such handler");
    await page.getByText("No handler matches").waitFor();
    await page.getByRole("button", { name: "Clear" }).click();
    await handlerRow(page, "mail").waitFor();
    await page.getByRole("heading", { name: "Handlers" }).click();
    await page.keyboard.press("j");
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "bill", exact: true }).waitFor();
  });
});

test("handlers: rates are computed from successive samples", async () => {
  await openPage("/handlers?name=quick", async (page) => {
    await handlerRow(page, "quick").waitFor();
    let isDone = false;
    const emitting = (async () => {
      for (let n = 0; !isDone && n < 200; n += 1) {
        await testServer.emit(Array.from({ length: 20 }, (_, i) => ({ type: "quick", key: `rate:${n}:${i}` })));
        await new Promise((resolve) => setTimeout(resolve, 100));
      }
    })();
    try {
      await handlerRow(page, "quick").getByRole("cell").last().filter({ hasText: /[1-9]/ }).waitFor();
    } finally {
      isDone = true;
      await emitting;
    }
  });
});

test("handlers: the detail page shows settings, routes and queues by tenant", async () => {
  await openPage("/handlers/mail", async (page) => {
    await page.getByText("calls an HTTP target").waitFor();
    const routes = page.getByRole("region", { name: "Routes to this handler" });
    await routes.getByText("record.published").waitFor();
    await routes.getByText("invoice.made").waitFor();
    await navigateTo(page, "/handlers/render");
    await page.getByRole("region", { name: "Routes to this handler" }).getByText("/publish/article").waitFor();
    await navigateTo(page, "/handlers/slow");
    await page.getByText("at most 2 at a time").waitFor();
    await page.getByText("at most 1000/m").waitFor();
    await page.getByRole("region", { name: "Queues", exact: true }).first().getByText("default").waitFor();
    await page.locator(".u-wrap").waitFor();
    await checkScreen(page, "handler");
    await navigateTo(page, "/handlers/unknown");
    await page.getByText("Not found").waitFor();
  }, { expectedErrors: /404/ });
});

test("handlers: an operator pauses and resumes a handler; author and reason are shown", async () => {
  await openPage("/handlers/mail", async (page) => {
    await page.getByRole("button", { name: "Pause", exact: true }).first().click();
    await page.getByLabel("Reason").fill(`no stamps ${HOSTILE_TEXT}`);
    await checkAccessibility(page, "pause dialog");
    await page.getByRole("dialog").getByRole("button", { name: "Pause" }).click();
    await page.getByText(`no stamps ${HOSTILE_TEXT}`).waitFor();
    const [rule] = (await readHandler("mail")).rules;
    assert.deepEqual([rule.kind, rule.tenant, rule.by, rule.reason], ["pause", null, "the-operator", `no stamps ${HOSTILE_TEXT}`]);
    await page.getByText("by the-operator").waitFor();
    assert.equal(await page.getByRole("button", { name: "Block" }).count(), 0, "only admins can block");
    await checkScreen(page, "handler-paused");
    await page.getByRole("button", { name: "Resume" }).click();
    await page.getByText("Not paused or blocked.").waitFor();
    assert.deepEqual((await readHandler("mail")).rules, []);
    await page.getByRole("button", { name: "Pause", exact: true }).first().click();
    await page.getByLabel("Tenant").fill("shop");
    await page.getByRole("dialog").getByRole("button", { name: "Pause" }).click();
    await page.getByText("for the tenant shop").waitFor();
    assert.equal((await readHandler("mail")).rules[0].tenant, "shop");
    await page.getByRole("button", { name: "Resume" }).click();
    await page.getByText("Not paused or blocked.").waitFor();
    await page.getByRole("button", { name: "Pause", exact: true }).first().click();
    await page.getByRole("button", { name: "Dismiss" }).click();
    assert.deepEqual((await readHandler("mail")).rules, []);
  }, { role: "operator" });
});

test("handlers: only an admin blocks and unblocks; changes appear live", async () => {
  await openPage("/handlers/index", async (page) => {
    await page.getByRole("button", { name: "Block" }).click();
    await page.getByLabel("Reason").fill("wrong data");
    await page.getByRole("dialog").getByRole("button", { name: "Block" }).click();
    await page.getByText("Blocked", { exact: true }).first().waitFor();
    assert.equal((await readHandler("index")).rules[0].kind, "block");
    await openPage("/handlers/index", async (other) => {
      await other.getByText("wrong data").waitFor();
      assert.equal(await other.getByRole("button", { name: "Unblock" }).count(), 0);
      await page.getByRole("button", { name: "Unblock" }).click();
      await other.getByText("Not paused or blocked.").waitFor();
    }, { role: "operator" });
    assert.deepEqual((await readHandler("index")).rules, []);
  });
});

test("handlers: a tenant token pauses its own tenant, a viewer nothing", async () => {
  await openPage("/handlers/flaky", async (page) => {
    await page.getByRole("button", { name: "Pause", exact: true }).first().click();
    assert.equal(await page.getByLabel("Tenant").count(), 0);
    await page.getByRole("dialog").getByRole("button", { name: "Pause" }).click();
    await page.getByRole("button", { name: "Resume" }).waitFor();
    assert.deepEqual((await readHandler("flaky")).rules.map((rule) => rule.tenant), ["shop"]);
    await page.getByRole("button", { name: "Resume" }).click();
    await page.getByText("Not paused or blocked.").waitFor();
    await testServer.put("/api/v1/handlers/flaky/pause", { reason: "for all" });
    await page.getByText("for all tenants").waitFor();
    assert.equal(await page.getByRole("button", { name: "Resume" }).count(), 0);
    await testServer.delete("/api/v1/handlers/flaky/pause");
    assert.equal(await page.getByRole("button", { name: "Replay" }).count(), 0);
  }, { role: "shop" });
  await openPage("/handlers/flaky", async (page) => {
    await page.getByText("Not paused or blocked.").waitFor();
    for (const name of ["Pause", "Block", "Replay"]) assert.equal(await page.getByRole("button", { name, exact: true }).count(), 0, name);
  }, { role: "viewer" });
});

test("handlers: older events are replayed to a new handler", async () => {
  const { events } = await testServer.emit([1, 2, 3].map((n) => ({ type: "quick", key: `again:${n}` })));
  testServer.configure((yaml) => yaml.replace("\nhandlers:\n", "\nhandlers:\n  copier: {run: pull}\n").replace("quick: [quick]", "quick: [quick, copier]"));
  await testServer.waitUntil("/api/v1/handlers", ({ handlers }) => handlers.some(({ name }) => name === "copier"));
  const listTasks = async () => (await testServer.get("/api/v1/tasks?handler=copier")).tasks;
  assert.deepEqual(await listTasks(), []);
  await openPage("/handlers/copier", async (page) => {
    await page.getByRole("button", { name: "Replay" }).click();
    await page.getByLabel("From event").fill("yesterday");
    await page.getByText("An event id is a whole number").waitFor();
    assert.ok(await page.getByRole("dialog").getByRole("button", { name: "Replay" }).isDisabled());
    await page.getByLabel("From event").fill(String(events[1].eventId));
    await page.getByRole("dialog").getByRole("button", { name: "Replay" }).click();
    await page.getByText("2 events replayed to copier").waitFor();
    assert.deepEqual((await listTasks()).map(({ key }) => key).sort(), ["again:2", "again:3"]);
    await page.locator(".task-counts").getByRole("link", { name: "2" }).waitFor();
  }, { role: "operator" });
  for (const { id } of await listTasks()) await testServer.post(`/api/v1/tasks/${id}/cancel`);
  testServer.configure();
  await testServer.waitUntil("/api/v1/handlers", ({ handlers }) => !handlers.some(({ name }) => name === "copier"));
});

test("handlers: missing tasks are counted and adopted", async () => {
  const withMislaid = (yaml) => yaml.replace("\nhandlers:\n", "\nhandlers:\n  mislaid: {run: pull}\n").replace("\nevent_handlers:\n", "\nevent_handlers:\n  mislaid: [mislaid]\n");
  testServer.configure(withMislaid);
  await testServer.waitUntil("/api/v1/handlers", ({ handlers }) => handlers.some(({ name }) => name === "mislaid"));
  const { events } = await testServer.emit([1, 2].map((n) => ({ type: "mislaid", key: `mislaid:${n}` })));
  await openPage("/handlers/mislaid", async (page) => {
    await page.getByText("external workers claim its tasks").waitFor();
    testServer.configure();
    await page.getByText("is no longer defined").waitFor();
    await page.getByText("2 tasks are missing").waitFor();
    assert.equal(await page.getByRole("button", { name: "Adopt" }).count(), 0);
    await checkScreen(page, "handler-gone");
    testServer.configure(withMislaid);
    await page.getByRole("button", { name: "Adopt" }).click();
    await page.getByText("Missing tasks of mislaid were adopted").waitFor();
    const { counts } = await readHandler("mislaid");
    assert.deepEqual([counts.missing, counts.ready], [0, 2]);
    await page.getByRole("button", { name: "Adopt" }).waitFor({ state: "detached" });
    for (const { tasks } of events) await testServer.post(`/api/v1/tasks/${tasks[0]}/cancel`);
  }, { expectedErrors: /404/ });
  testServer.configure();
  await testServer.waitUntil("/api/v1/handlers", ({ handlers }) => !handlers.some(({ name }) => name === "mislaid"));
});

test("handlers: collections of a source are run and paused", async () => {
  await openPage("/handlers/shop", async (page) => {
    const customers = page.getByRole("listitem").filter({ hasText: "customers" });
    await customers.getByText("on request only").waitFor();
    await page.getByText("every 5 minutes, at second 0").waitFor();
    await customers.getByRole("button", { name: "Run now" }).click();
    await page.getByText("shop/customers is queued or running").waitFor();
    await testServer.waitUntil("/api/v1/tasks?handler=shop&collection=customers", ({ tasks }) => tasks.length === 1 && tasks[0].status === "SUCCESS");
    await customers.getByRole("button", { name: "Pause" }).click();
    await page.getByLabel("Reason").fill(HOSTILE_TEXT);
    await page.getByRole("dialog").getByRole("button", { name: "Pause" }).click();
    await customers.getByText("On hold").waitFor();
    const { rules } = await readHandler("shop");
    assert.deepEqual(rules.map(({ space, name }) => [space, name]), [["collection", "shop/customers"]]);
    await page.getByText("the collection customers").waitFor();
    await checkScreen(page, "handler-source");
    await page.getByRole("button", { name: "Resume" }).click();
    await page.getByText("Not paused or blocked.").waitFor();
    assert.deepEqual((await readHandler("shop")).rules, []);
  });
});
