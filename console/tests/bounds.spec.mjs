// What happens between a snapshot and the stream, and what a page holds and asks for when it is left open.

import assert from "node:assert/strict";
import { test } from "node:test";
import { goTo, visit } from "./browser.mjs";
import { world } from "./world.mjs";

/** Loads a screen in which nothing is read anew by the clock alone: what is seen there was told, or asked for because of it.
 * @param {import("playwright-core").Page} page @param {string} hash */
async function withoutClock(page, hash) {
  await page.addInitScript(() => {
    const { setTimeout } = window;
    window.setTimeout = (run, ms, ...more) => (ms >= 10_000 ? 0 : setTimeout(run, ms, ...more));
  });
  await goTo(page, hash);
  await page.reload();
}

test("bounds: what becomes of tasks between the snapshot and the stream is not missed", async () => {
  await visit("/overview", async (page) => {
    let open;
    const held = new Promise((resolve) => { open = resolve; });
    await page.route("**/api/v1/stream*", (route) => held.then(() => route.continue()));
    await withoutClock(page, "/tasks?key=between:1");
    await page.getByText("No task matches").waitFor();
    await world.emit({ type: "record.changed", key: "between:1" });
    await world.until("/api/v1/tasks?key=between:1", ({ tasks }) => tasks[0]?.status === "SUCCESS");
    assert.equal(await page.getByText("No task matches").count(), 1);
    open();
    await page.locator("tbody").getByText("Succeeded").first().waitFor();
  });
});

test("bounds: large events leave the memory once they are shown", async () => {
  await visit("/stream?return=large", async (page) => {
    await page.getByText("Live", { exact: true }).waitFor();
    const session = await page.context().newCDPSession(page);
    await session.send("Performance.enable");
    const held = async () => {
      await session.send("HeapProfiler.collectGarbage");
      return (await session.send("Performance.getMetrics")).metrics.find(({ name }) => name === "JSHeapUsedSize").value;
    };
    const before = await held();
    const words = "so many words ".repeat(35_000);
    for (let n = 0; n < 40; n += 1) await world.emit({ type: "large", key: "large:1", value: { words: `${n} ${words}` } });
    await page.getByText("40 shown").waitFor();
    const more = (await held() - before) / 1e6;
    console.log(`40 events of ${(words.length / 1e6).toFixed(2)} MB: the page holds ${more.toFixed(1)} MB more`);
    assert.ok(more < 8, `${more} MB`);
  });
});

test("bounds: failures that come are let go of again, the oldest first", async () => {
  await visit("/overview", async (page) => {
    const { tasks } = await world.get("/api/v1/tasks?status=FAILED&limit=1000");
    // More than any test could let fail are told by a stream that is not the server's.
    await page.addInitScript(() => {
      const { fetch } = window;
      window.fetch = (path, how) => {
        if (!String(path).startsWith("/api/v1/stream")) return fetch(path, how);
        const body = new ReadableStream({ start: (stream) => { window.tell = (text) => stream.enqueue(new TextEncoder().encode(text)); } });
        return Promise.resolve(new Response(body));
      };
    });
    await withoutClock(page, "/failures");
    await page.getByText(`${tasks.length} failed tasks in`).waitFor();
    const anew = page.waitForRequest(/api\/v1\/tasks\?/);
    await page.evaluate((change) => {
      for (let n = 0; n < 8000; n += 1) window.tell(`event: task\ndata: ${JSON.stringify({ ...change, id: `${change.id}${n}` })}\n\n`);
    }, { ...tasks[0], time: new Date().toISOString() });
    await anew;
    await page.getByText(`${tasks.length} failed tasks in`).waitFor();
  });
});

test("bounds: a server that is slow to tell its metrics is asked for them once at a time", async () => {
  await visit("/nodes", async (page) => {
    let asked = 0;
    const waiting = [];
    await page.route("**/metrics", (route) => {
      asked += 1;
      waiting.push(route);
    });
    await goTo(page, "/overview");
    await page.getByRole("heading", { name: "Overview" }).waitFor();
    // Three times as long as it takes until they are asked for again.
    await page.evaluate(() => new Promise((resolve) => setTimeout(resolve, 6500)));
    assert.equal(asked, 1);
    await waiting[0].continue();
    while (asked < 2) await page.evaluate(() => new Promise((resolve) => setTimeout(resolve, 100)));
    await Promise.all(waiting.slice(1).map((route) => route.continue()));
  });
});

test("bounds: a long work goes on however many follow it, and ends with who began it", async () => {
  await visit("/tasks", async (page) => {
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
      const deed = soon({ text: "In a moment", run: async () => { done.soon += 1; }, ms: 50 });
      token.value = "another";
      await deed;
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

test("bounds: where a part of the console cannot be loaded, that is said", async () => {
  const { tasks } = await world.get("/api/v1/tasks?handler=slow");
  await visit(`/tasks/${tasks[0].id}`, async (page) => {
    await page.getByRole("heading", { name: "slow" }).waitFor();
    // As after an upgrade of the binary: the files of this version are gone.
    await page.route("**/console/**", (route) => route.fulfill({ status: 404 }));
    await page.keyboard.press("?");
    await page.getByText("A part of the console could not be loaded").waitFor();
    await goTo(page, "/nodes");
    await page.getByText("This screen could not be loaded").waitFor();
  }, { complaints: /404|Failed to (load|fetch)/ });
});

test("bounds: for a screen that is not there the page begins anew once, and not where one has gone on", async () => {
  await visit("/overview", async (page) => {
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
    await goTo(page, "/nodes");
    const first = page.waitForResponse("**/livez");
    await page.waitForRequest("**/livez");
    await goTo(page, "/stream");
    await page.getByText("Live", { exact: true }).waitFor();
    answer();
    await first;
    await page.evaluate(() => new Promise((resolve) => setTimeout(resolve, 100)));
    assert.equal(asked.pages, 0, "one has gone on");
    await goTo(page, "/nodes");
    while (asked.whether < 4) await page.waitForResponse("**/livez");
    await page.getByText("This screen could not be loaded").waitFor();
    assert.equal(asked.pages, 1, "the second time it was asked for, and not after");
  }, { complaints: /404|Failed to (load|fetch)/ });
});

test("bounds: a link with a broken token asks for another, and keeps it to itself", async () => {
  await visit("/", async (page) => {
    await page.goto(`${world.url}/?x#token=%zz&to=%2Fstream%zz`);
    await page.getByLabel("Token").waitFor();
    assert.equal(await page.evaluate(() => location.href.includes("zz&")), false);
  }, { role: null, complaints: /401|400/ });
});

test("bounds: screens that were left leave nothing behind", async () => {
  const { tasks } = await world.get("/api/v1/tasks?handler=flaky&limit=1");
  const screens = ["/overview", "/stream?tasks=1", `/events/${world.published.eventId}`, "/objects", "/objects/record%3A1", "/tasks", `/tasks/${tasks[0].id}`,
    "/failures", "/handlers", "/handlers/mail", "/schedules", "/chains", "/chains/publish", "/orders", "/orders/publish/article,118", "/nodes", "/configuration", "/audit"];
  await visit("/overview", async (page) => {
    const session = await page.context().newCDPSession(page);
    await session.send("Performance.enable");
    const round = async () => {
      for (const screen of screens) {
        await goTo(page, screen);
        await page.locator("main h1").waitFor();
        await page.waitForFunction(() => document.querySelector("main .loading") === null);
        await world.emit({ type: "record.changed", key: "record:1" });
      }
      await goTo(page, "/nowhere");
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
    // What was shown last of a screen may be kept until it is shown again; that may have grown by a row.
    assert.ok(more("JSEventListeners") < screens.length && more("Nodes") < 300 && more("JSHeapUsedSize") < 3e6, JSON.stringify({ before, after }));
  }, { complaints: /404/ });
});
