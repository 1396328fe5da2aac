// Gaps between snapshot and stream, and the memory and requests of a page that stays open.

import assert from "node:assert/strict";
import { test } from "node:test";
import { navigateTo, openPage } from "./browser.mjs";
import { testServer } from "./test-server.mjs";

/** Opens a screen without polling: all updates come from the stream.
 * @param {import("playwright-core").Page} page @param {string} hash */
async function openWithoutPolling(page, hash) {
  await page.addInitScript(() => {
    const { setTimeout } = window;
    window.setTimeout = (run, ms, ...more) => (ms >= 10_000 ? 0 : setTimeout(run, ms, ...more));
  });
  await navigateTo(page, hash);
  await page.reload();
}

test("bounds: task changes between the snapshot and the stream are not missed", async () => {
  await openPage("/overview", async (page) => {
    let open;
    const held = new Promise((resolve) => { open = resolve; });
    await page.route("**/api/v1/stream*", (route) => held.then(() => route.continue()));
    await openWithoutPolling(page, "/tasks?key=between:1");
    await page.getByText("No task matches").waitFor();
    await testServer.emit({ type: "record.changed", key: "between:1" });
    await testServer.waitUntil("/api/v1/tasks?key=between:1", ({ tasks }) => tasks[0]?.status === "SUCCESS");
    assert.equal(await page.getByText("No task matches").count(), 1);
    open();
    await page.locator("tbody").getByText("Succeeded").first().waitFor();
  });
});

test("bounds: large events are freed from memory once they are shown", async () => {
  await openPage("/stream?return=large", async (page) => {
    await page.getByText("Live", { exact: true }).waitFor();
    const session = await page.context().newCDPSession(page);
    await session.send("Performance.enable");
    const held = async () => {
      await session.send("HeapProfiler.collectGarbage");
      return (await session.send("Performance.getMetrics")).metrics.find(({ name }) => name === "JSHeapUsedSize").value;
    };
    const before = await held();
    const words = "so many words ".repeat(35_000);
    for (let n = 0; n < 40; n += 1) await testServer.emit({ type: "large", key: "large:1", value: { words: `${n} ${words}` } });
    await page.getByText("40 shown").waitFor();
    const more = (await held() - before) / 1e6;
    console.log(`40 events of ${(words.length / 1e6).toFixed(2)} MB: the page holds ${more.toFixed(1)} MB more`);
    assert.ok(more < 8, `${more} MB`);
  });
});

test("bounds: new failures are dropped again, the oldest first", async () => {
  await openPage("/overview", async (page) => {
    const { tasks } = await testServer.get("/api/v1/tasks?status=FAILED&limit=1000");
    // A fake stream reports more failures than a test could cause.
    await page.addInitScript(() => {
      const { fetch } = window;
      window.fetch = (path, how) => {
        if (!String(path).startsWith("/api/v1/stream")) return fetch(path, how);
        const body = new ReadableStream({ start: (stream) => { window.tell = (text) => stream.enqueue(new TextEncoder().encode(text)); } });
        return Promise.resolve(new Response(body));
      };
    });
    await openWithoutPolling(page, "/failures");
    await page.getByText(`${tasks.length} failed tasks in`).waitFor();
    const anew = page.waitForRequest(/api\/v1\/tasks\?/);
    await page.evaluate((change) => {
      for (let n = 0; n < 8000; n += 1) window.tell(`event: task\ndata: ${JSON.stringify({ ...change, id: `${change.id}${n}` })}\n\n`);
    }, { ...tasks[0], time: new Date().toISOString() });
    await anew;
    await page.getByText(`${tasks.length} failed tasks in`).waitFor();
  });
});

test("bounds: slow metrics are requested one at a time", async () => {
  await openPage("/nodes", async (page) => {
    let asked = 0;
    const waiting = [];
    await page.route("**/metrics", (route) => {
      asked += 1;
      waiting.push(route);
    });
    await navigateTo(page, "/overview");
    await page.getByRole("heading", { name: "Overview" }).waitFor();
    // Three times the sampling interval.
    await page.evaluate(() => new Promise((resolve) => setTimeout(resolve, 6500)));
    assert.equal(asked, 1);
    await waiting[0].continue();
    while (asked < 2) await page.evaluate(() => new Promise((resolve) => setTimeout(resolve, 100)));
    await Promise.all(waiting.slice(1).map((route) => route.continue()));
  });
});

test("bounds: a long bulk job survives later jobs, and stops when its token signs out", async () => {
  await openPage("/tasks", async (page) => {
    await page.getByRole("heading", { name: "Tasks" }).waitFor();
    const done = await page.evaluate(async () => {
      const { runBulk: many } = await import("/console/dev/parts/bulk.js");
      const { runWithUndo: soon } = await import("/console/dev/parts/actions.js");
      const { token } = await import("/console/dev/data/session.js");
      let go = () => {};
      const gate = new Promise((resolve) => { go = resolve; });
      const done = { long: 0, foreign: 0, soon: 0 };
      const ids = Array.from({ length: 10 }, (_, n) => String(n));
      const long = many({ title: "Long", ids, run: async () => { await gate; done.long += 1; } });
      for (let n = 0; n < 6; n += 1) await many({ title: `Short ${n}`, ids, run: async () => {} });
      go();
      await long;
      const mine = token.value;
      const foreign = many({ title: "Another's", ids, run: async () => { done.foreign += 1; token.value = "another"; } });
      await foreign;
      token.value = mine;
      const action = soon({ text: "In a moment", run: async () => { done.soon += 1; }, ms: 50 });
      token.value = "another";
      await action;
      token.value = mine;
      return done;
    });
    assert.equal(done.long, 10);
    assert.ok(done.foreign <= 4, `${done.foreign}`);
    assert.equal(done.soon, 0);
    await page.getByText("Stopped.").waitFor();
    assert.ok(await page.locator(".progress").count() <= 6);
  }, { complaints: /401/ });
});

test("bounds: an error is shown if a part of the console cannot be loaded", async () => {
  const { tasks } = await testServer.get("/api/v1/tasks?handler=slow");
  await openPage(`/tasks/${tasks[0].id}`, async (page) => {
    await page.getByRole("heading", { name: "slow" }).waitFor();
    // As after an upgrade of the binary: the files of this version are gone.
    await page.route("**/console/**", (route) => route.fulfill({ status: 404 }));
    await page.keyboard.press("?");
    await page.getByText("A part of the console could not be loaded").waitFor();
    await navigateTo(page, "/nodes");
    await page.getByText("This screen could not be loaded").waitFor();
  }, { complaints: /404|Failed to (load|fetch)/ });
});

test("bounds: a screen that cannot be loaded reloads the page once, and not after leaving it", async () => {
  await openPage("/overview", async (page) => {
    await page.getByRole("heading", { name: "Overview" }).waitFor();
    await page.route("**/screens/nodes/**", (route) => route.fulfill({ status: 404 }));
    const asked = { pages: 0, whether: 0 };
    let answer = () => {};
    const held = new Promise((resolve) => {
      answer = resolve;
    });
    page.on("request", (request) => {
      if (request.isNavigationRequest()) asked.pages += 1;
    });
    await page.route("**/livez", async (route) => {
      asked.whether += 1;
      await held;
      await route.continue();
    });
    await navigateTo(page, "/nodes");
    const first = page.waitForResponse("**/livez");
    await page.waitForRequest("**/livez");
    await navigateTo(page, "/stream");
    await page.getByText("Live", { exact: true }).waitFor();
    answer();
    await first;
    await page.evaluate(() => new Promise((resolve) => setTimeout(resolve, 100)));
    assert.equal(asked.pages, 0, "one has gone on");
    await navigateTo(page, "/nodes");
    while (asked.whether < 4) await page.waitForResponse("**/livez");
    await page.getByText("This screen could not be loaded").waitFor();
    assert.equal(asked.pages, 1, "the second time it was asked for, and not after");
  }, { complaints: /404|Failed to (load|fetch)/ });
});

test("bounds: a link with a malformed token leads to the login page and is removed from the address", async () => {
  await openPage("/", async (page) => {
    await page.goto(`${testServer.url}/?x#token=%zz&to=%2Fstream%zz`);
    await page.getByLabel("Token").waitFor();
    assert.equal(await page.evaluate(() => location.href.includes("zz&")), false);
  }, { role: null, complaints: /401|400/ });
});

test("bounds: closed screens leave no elements, listeners or connections behind", async () => {
  const { tasks } = await testServer.get("/api/v1/tasks?handler=flaky&limit=1");
  const screens = ["/overview", "/stream?tasks=1", `/events/${testServer.published.eventId}`, "/objects", "/objects/record%3A1", "/tasks", `/tasks/${tasks[0].id}`,
    "/failures", "/handlers", "/handlers/mail", "/schedules", "/chains", "/chains/publish", "/orders", "/orders/publish/article,118", "/nodes", "/configuration", "/audit"];
  await openPage("/overview", async (page) => {
    const session = await page.context().newCDPSession(page);
    await session.send("Performance.enable");
    const round = async () => {
      for (const screen of screens) {
        await navigateTo(page, screen);
        await page.locator("main h1").waitFor();
        await page.waitForFunction(() => document.querySelector("main .loading") === null);
        await testServer.emit({ type: "record.changed", key: "record:1" });
      }
      await navigateTo(page, "/nowhere");
      await page.getByText("Page not found").waitFor();
      await page.waitForFunction(async () => (await import("/console/dev/data/stream.js")).connection.value.phase === "off");
      await session.send("HeapProfiler.collectGarbage");
      const { metrics } = await session.send("Performance.getMetrics");
      return Object.fromEntries(metrics.map(({ name, value }) => [name, value]));
    };
    await round();
    const before = await round();
    await round();
    await round();
    const after = await round();
    const more = (name) => after[name] - before[name];
    console.log(`three rounds over ${screens.length} screens: ${more("JSEventListeners")} listeners, ${more("Nodes")} nodes and ${(more("JSHeapUsedSize") / 1000).toFixed(0)} kB more`);
    // The last rows of a screen may be cached, and there may be one more.
    assert.ok(more("JSEventListeners") < screens.length && more("Nodes") < 300 && more("JSHeapUsedSize") < 3e6, JSON.stringify({ before, after }));
  }, { complaints: /404/ });
});
