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
    let releaseStream;
    const released = new Promise((resolve) => { releaseStream = resolve; });
    await page.route("**/api/v1/stream*", (route) => released.then(() => route.continue()));
    await openWithoutPolling(page, "/tasks?key=between:1");
    await page.getByText("No task matches").waitFor();
    await testServer.emit({ type: "record.changed", key: "between:1" });
    await testServer.waitUntil("/api/v1/tasks?key=between:1", ({ tasks }) => tasks[0]?.status === "SUCCESS");
    assert.equal(await page.getByText("No task matches").count(), 1);
    releaseStream();
    await page.locator("tbody").getByText("Succeeded").first().waitFor();
  });
});

test("bounds: large events are freed from memory once they are shown", async () => {
  await openPage("/stream?return=large", async (page) => {
    await page.getByText("Live", { exact: true }).waitFor();
    const session = await page.context().newCDPSession(page);
    await session.send("Performance.enable");
    const readHeapSize = async () => {
      await session.send("HeapProfiler.collectGarbage");
      return (await session.send("Performance.getMetrics")).metrics.find(({ name }) => name === "JSHeapUsedSize").value;
    };
    const heapSizeBefore = await readHeapSize();
    const longText = "some words ".repeat(35_000);
    for (let n = 0; n < 40; n += 1) await testServer.emit({ type: "large", key: "large:1", value: { words: `${n} ${longText}` } });
    await page.getByText("40 shown").waitFor();
    const growthMb = (await readHeapSize() - heapSizeBefore) / 1e6;
    console.log(`40 events of ${(longText.length / 1e6).toFixed(2)} MB: the heap grew by ${growthMb.toFixed(1)} MB`);
    assert.ok(growthMb < 8, `${growthMb} MB`);
  });
});

test("bounds: failures beyond the limit are dropped, oldest first", async () => {
  await openPage("/overview", async (page) => {
    const { tasks } = await testServer.get("/api/v1/tasks?status=FAILED&limit=1000");
    // A fake stream reports more failures than a test could cause.
    await page.addInitScript(() => {
      const { fetch } = window;
      window.fetch = (path, options) => {
        if (!String(path).startsWith("/api/v1/stream")) return fetch(path, options);
        const body = new ReadableStream({ start: (stream) => { window.streamText = (text) => stream.enqueue(new TextEncoder().encode(text)); } });
        return Promise.resolve(new Response(body));
      };
    });
    await openWithoutPolling(page, "/failures");
    await page.getByText(`${tasks.length} failed tasks in`).waitFor();
    const reread = page.waitForRequest(/api\/v1\/tasks\?/);
    await page.evaluate((change) => {
      for (let n = 0; n < 8000; n += 1) window.streamText(`event: task\ndata: ${JSON.stringify({ ...change, id: `${change.id}${n}` })}\n\n`);
    }, { ...tasks[0], time: new Date().toISOString() });
    await reread;
    await page.getByText(`${tasks.length} failed tasks in`).waitFor();
  });
});

test("bounds: slow metrics are requested one at a time", async () => {
  await openPage("/nodes", async (page) => {
    let requestCount = 0;
    const pendingRoutes = [];
    await page.route("**/metrics", (route) => {
      requestCount += 1;
      pendingRoutes.push(route);
    });
    await navigateTo(page, "/overview");
    await page.getByRole("heading", { name: "Overview" }).waitFor();
    // Three times the sampling interval.
    await page.evaluate(() => new Promise((resolve) => setTimeout(resolve, 6500)));
    assert.equal(requestCount, 1);
    await pendingRoutes[0].continue();
    while (requestCount < 2) await page.evaluate(() => new Promise((resolve) => setTimeout(resolve, 100)));
    await Promise.all(pendingRoutes.slice(1).map((route) => route.continue()));
  });
});

test("bounds: a long bulk job survives later jobs, and stops when its token signs out", async () => {
  await openPage("/tasks", async (page) => {
    await page.getByRole("heading", { name: "Tasks" }).waitFor();
    const done = await page.evaluate(async () => {
      const { runBulkJob } = await import("/console/dev/parts/bulk.js");
      const { runWithUndo } = await import("/console/dev/parts/actions.js");
      const { token } = await import("/console/dev/data/session.js");
      let release = () => {};
      const released = new Promise((resolve) => { release = resolve; });
      const done = { long: 0, afterSignOut: 0, delayed: 0 };
      const ids = Array.from({ length: 10 }, (_, n) => String(n));
      const longJob = runBulkJob({ title: "Long", ids, run: async () => { await released; done.long += 1; } });
      for (let n = 0; n < 6; n += 1) await runBulkJob({ title: `Short ${n}`, ids, run: async () => {} });
      release();
      await longJob;
      const originalToken = token.value;
      const afterSignOut = runBulkJob({ title: "Signed out", ids, run: async () => { done.afterSignOut += 1; token.value = "another"; } });
      await afterSignOut;
      token.value = originalToken;
      const action = runWithUndo({ text: "Delayed", run: async () => { done.delayed += 1; }, delayMs: 50 });
      token.value = "another";
      await action;
      token.value = originalToken;
      return done;
    });
    assert.equal(done.long, 10);
    assert.ok(done.afterSignOut <= 4, `${done.afterSignOut}`);
    assert.equal(done.delayed, 0);
    await page.getByText("Stopped.").waitFor();
    assert.ok(await page.locator(".progress").count() <= 6);
  }, { expectedErrors: /401/ });
});

test("bounds: an error is shown if a part of the console cannot be loaded", async () => {
  const { tasks } = await testServer.get("/api/v1/tasks?handler=slow");
  await openPage(`/tasks/${tasks[0].id}`, async (page) => {
    await page.getByRole("heading", { name: "slow" }).waitFor();
    // As after an upgrade of the binary: the files of this version no longer exist.
    await page.route("**/console/**", (route) => route.fulfill({ status: 404 }));
    await page.keyboard.press("?");
    await page.getByText("A part of the console could not be loaded").waitFor();
    await navigateTo(page, "/nodes");
    await page.getByText("This screen could not be loaded").waitFor();
  }, { expectedErrors: /404|Failed to (load|fetch)/ });
});

test("bounds: a screen that cannot be loaded reloads the page once, and not after leaving it", async () => {
  await openPage("/overview", async (page) => {
    await page.getByRole("heading", { name: "Overview" }).waitFor();
    await page.route("**/screens/nodes/**", (route) => route.fulfill({ status: 404 }));
    const requests = { pages: 0, livez: 0 };
    let releaseLivez = () => {};
    const released = new Promise((resolve) => {
      releaseLivez = resolve;
    });
    page.on("request", (request) => {
      if (request.isNavigationRequest()) requests.pages += 1;
    });
    await page.route("**/livez", async (route) => {
      requests.livez += 1;
      await released;
      await route.continue();
    });
    await navigateTo(page, "/nodes");
    const firstResponse = page.waitForResponse("**/livez");
    await page.waitForRequest("**/livez");
    await navigateTo(page, "/stream");
    await page.getByText("Live", { exact: true }).waitFor();
    releaseLivez();
    await firstResponse;
    await page.evaluate(() => new Promise((resolve) => setTimeout(resolve, 100)));
    assert.equal(requests.pages, 0, "no reload after leaving the screen");
    await navigateTo(page, "/nodes");
    while (requests.livez < 4) await page.waitForResponse("**/livez");
    await page.getByText("This screen could not be loaded").waitFor();
    assert.equal(requests.pages, 1, "the page is reloaded once");
  }, { expectedErrors: /404|Failed to (load|fetch)/ });
});

test("bounds: a link with a malformed token leads to the login page and is removed from the address", async () => {
  await openPage("/", async (page) => {
    await page.goto(`${testServer.url}/?x#token=%zz&to=%2Fstream%zz`);
    await page.getByLabel("Token").waitFor();
    assert.equal(await page.evaluate(() => location.href.includes("zz&")), false);
  }, { role: null, expectedErrors: /401|400/ });
});

test("bounds: closed screens leave no elements, listeners or connections behind", async () => {
  const { tasks } = await testServer.get("/api/v1/tasks?handler=flaky&limit=1");
  const screens = ["/overview", "/stream?tasks=1", `/events/${testServer.publishedEvent.eventId}`, "/objects", "/objects/record%3A1", "/tasks", `/tasks/${tasks[0].id}`,
    "/failures", "/handlers", "/handlers/mail", "/schedules", "/chains", "/chains/publish", "/orders", "/orders/publish/article,118", "/nodes", "/configuration", "/audit"];
  await openPage("/overview", async (page) => {
    const session = await page.context().newCDPSession(page);
    await session.send("Performance.enable");
    const visitAllScreens = async () => {
      for (const screen of screens) {
        await navigateTo(page, screen);
        await page.locator("main h1").waitFor();
        await page.waitForFunction(() => document.querySelector("main .loading") === null);
        await testServer.emit({ type: "record.changed", key: "record:1" });
      }
      await navigateTo(page, "/nowhere");
      await page.getByText("Page not found").waitFor();
      await page.waitForFunction(async () => (await import("/console/dev/data/stream.js")).streamConnectionState.value.phase === "off");
    };
    const measureLiveObjects = async () => {
      await session.send("HeapProfiler.collectGarbage");
      const { metrics } = await session.send("Performance.getMetrics");
      return Object.fromEntries(metrics.map(({ name, value }) => [name, value]));
    };
    for (let round = 0; round < 2; round += 1) await visitAllScreens();
    const metricsBefore = await measureLiveObjects();
    for (let round = 0; round < 3; round += 1) await visitAllScreens();
    let metricsAfter = await measureLiveObjects();
    const growth = (name) => metricsAfter[name] - metricsBefore[name];
    // A request or a timer of a screen that was just closed may keep its elements for a moment. A leak keeps them forever.
    for (let reading = 0; reading < 20 && (growth("JSEventListeners") > 0 || growth("Nodes") > 0); reading += 1) {
      await page.waitForTimeout(250);
      metricsAfter = await measureLiveObjects();
    }
    console.log(`three rounds over ${screens.length} screens: ${growth("JSEventListeners")} listeners, ${growth("Nodes")} DOM nodes and ${(growth("JSHeapUsedSize") / 1000).toFixed(0)} kB more`);
    // Rows of the last screen may be cached, and their number varies slightly.
    assert.ok(growth("JSEventListeners") < screens.length && growth("Nodes") < 300 && growth("JSHeapUsedSize") < 3e6, JSON.stringify({ metricsBefore, metricsAfter }));
  }, { expectedErrors: /404/ });
});
