// The stream: live, filtered, paused, and bounded.

import assert from "node:assert/strict";
import { test } from "node:test";
import { describeEngineEvent } from "../data/engine-events.js";
import { countElements, navigateTo, bufferDeliveries, checkScreen, openPage } from "./browser.mjs";
import { HOSTILE_TEXT, testServer } from "./test-server.mjs";

/** Each engine event with its readable line. */
const ENGINE_EVENT_LINES = [
  [{ TYPE: "FileBasedAdded", key: "Order:/publish/article,203", nodeId: "render" }, "order 203 added to /publish/article at render"],
  [{ TYPE: "FileBasedRemoved", key: "Order:/publish/article,203" }, "order 203 removed from /publish/article"],
  [{ TYPE: "OrderStarted", key: "/publish/article,203", nodeId: "render", taskId: "t" }, "order 203 started at render"],
  [{ TYPE: "OrderStepStarted", key: "/publish/article,203", nodeId: "render", taskId: "t" }, "order 203 runs step render"],
  [{ TYPE: "OrderStepEnded", key: "/publish/article,203", nodeTransition: { TYPE: "Success" } }, "step of order 203 succeeded"],
  [{ TYPE: "OrderStepEnded", key: "/publish/article,203", nodeTransition: { TYPE: "Error", returnCode: 3 } }, "step of order 203 failed with return code 3"],
  [{ TYPE: "OrderStepEnded", key: "/publish/article,203", nodeTransition: { TYPE: "Keep" } }, "step of order 203 will run again"],
  [{ TYPE: "OrderSetBack", key: "/publish/article,203", nodeId: "deploy" }, "order 203 is set back at deploy and will be retried"],
  [{ TYPE: "OrderNodeChanged", key: "/publish/article,203", fromNodeId: "render", nodeId: "deploy" }, "order 203 moved from render to deploy"],
  [{ TYPE: "OrderSuspended", key: "/publish/article,203" }, "order 203 suspended"],
  [{ TYPE: "OrderResumed", key: "/publish/article,203" }, "order 203 resumed"],
  [{ TYPE: "OrderFinished", key: "/publish/article,203", nodeId: "done" }, "order 203 finished at done"],
  [{ TYPE: "JobChainStateChanged", key: "/publish/article", state: "stopped" }, "chain /publish/article is now stopped"],
  [{ TYPE: "JobChainNodeActionChanged", key: "/publish/article", nodeId: "deploy", action: "next_state" }, "node deploy of chain /publish/article set to next_state"],
  [{ TYPE: "TaskStarted", key: { jobPath: "/index", taskId: "t" } }, "task of handler index started"],
  [{ TYPE: "TaskEnded", key: { jobPath: "/index", taskId: "t" }, returnCode: 0 }, "task of handler index ended with return code 0"],
  [{ TYPE: "TaskClosed", key: { jobPath: "/index", taskId: "t" } }, "task of handler index closed"],
  [{ TYPE: "FileBasedAdded", key: "Job:/index" }, "handler index added"],
  [{ TYPE: "FileBasedReplaced", key: "JobChain:/publish/article" }, "chain /publish/article replaced"],
  [{ TYPE: "FileBasedRemoved", key: "Schedule:/nightly" }, "schedule nightly removed"],
  [{ TYPE: "FileBasedActivated", key: "Job:/index" }, "handler index activated"],
  [{ TYPE: "FileBasedAdded", key: "Source:/shop" }, "source shop added"],
  [{ TYPE: "SchedulerStateChanged", state: "running" }, "scheduler is now running"],
  [{ TYPE: "SchedulerClosed" }, "scheduler closed"],
];

test("stream: each engine event has a readable line, and unknown ones show their fields", () => {
  for (const [event, line] of ENGINE_EVENT_LINES) assert.equal(describeEngineEvent({ eventId: 1, ...event }), line);
  assert.equal(describeEngineEvent({ eventId: 1, TYPE: "SomethingNewer", key: "/a,1", nodeId: "x", count: { n: 2 } }), 'nodeId x  count {"n":2}');
  assert.equal(describeEngineEvent({ eventId: 1, TYPE: "OrderFinished", key: "/a,1" }), "", "an event that lacks a field has no line");
  assert.equal(describeEngineEvent({ eventId: 1, TYPE: "OrderSuspended", key: "/a,1\u202e\u0007\n2" }), "order 1   2 suspended");
});

test("stream: engine events read as sentences in the stream and on their own page", async () => {
  await testServer.post("/api/v1/orders", { path: "/publish/article,line-1", delay: "1h" });
  await openPage("/stream?path=/publish/article,line-1", async (page) => {
    await page.getByText("order line-1 added to /publish/article at render").click();
    await page.getByRole("heading", { name: "FileBasedAdded" }).waitFor();
    await page.getByText("order line-1 added to /publish/article at render").waitFor();
  });
  await testServer.delete("/api/v1/orders/publish/article,line-1");
});

const rows = (page) => page.locator(".table-box tbody tr:not(.spacer-row)");

test("stream: new events appear live, newest first", async () => {
  await testServer.emit({ type: "fresh.before", key: "fresh:1" });
  await openPage("/stream", async (page) => {
    await page.getByText("Live", { exact: true }).waitFor();
    await rows(page).first().waitFor();
    await testServer.emit([{ type: "fresh.one", key: "fresh:1", value: { n: 1 } }, { type: "fresh.two", key: "fresh:1", value: { n: 2 } }]);
    await page.getByText("fresh.two").waitFor();
    const types = await page.locator("tbody td:nth-child(2)").allInnerTexts();
    assert.ok(types.indexOf("fresh.two") < types.indexOf("fresh.one"), types.join());
    assert.ok(types.includes("fresh.before"), "earlier events are shown, too");
    await checkScreen(page, "stream");
  });
});

test("stream: filters are in the address, and the CLI command can be copied", async () => {
  await openPage("/stream", async (page) => {
    await page.getByLabel("Object").fill("record:1");
    await page.waitForFunction(() => location.hash === "#/stream?key=record%3A1");
    await page.waitForFunction(() => [...document.querySelectorAll("tbody td:nth-child(3)")].every((cell) => cell.textContent === "record:1"));
    const shown = await rows(page).count();
    const { eventSnapshots } = await testServer.get("/api/v1/events?limit=-100&key=record:1");
    assert.equal(shown, eventSnapshots.length);
    await page.getByRole("button", { name: "Copy as" }).click();
    await page.getByRole("button", { name: /CLI/ }).click();
    assert.equal(await page.evaluate(() => navigator.clipboard.readText()), "pointsman watch --key record:1");
    await page.getByRole("button", { name: "Clear" }).click();
    await page.waitForFunction(() => location.hash === "#/stream");
    await page.getByLabel("Type").fill("never.emitted");
    await page.getByText("No event matches").waitFor();
  });
});

test("stream: a refused filter shows an error", async () => {
  await openPage("/stream?path=nowhere", async (page) => {
    await page.getByText("The journal could not be loaded").waitFor();
  }, { expectedErrors: /400/ });
});

test("stream: a paused stream buffers events and shows them on resume", async () => {
  await openPage("/stream?return=buffered", async (page) => {
    await page.getByText("Live", { exact: true }).waitFor();
    await page.keyboard.press("p");
    await page.getByText("Paused, 0 new").waitFor();
    await testServer.emit([1, 2, 3].map((n) => ({ type: "buffered", key: `buffered:${n}` })));
    await page.getByText("Paused, 3 new").waitFor();
    assert.equal(await rows(page).count(), 0);
    await page.getByRole("button", { name: "Resume" }).click();
    await rows(page).nth(2).waitFor();
  });
});

test("stream: task changes can be shown, and rows are operated with keys", async () => {
  await openPage("/stream?key=watched:1", async (page) => {
    await page.getByText("Live", { exact: true }).waitFor();
    await page.getByRole("button", { name: "Tasks" }).click();
    await page.waitForFunction(() => location.hash.includes("tasks=1"));
    await page.getByText("Live", { exact: true }).waitFor();
    await testServer.emit({ type: "flaky", key: "watched:1" });
    await page.getByText("Failed", { exact: true }).first().waitFor();
    const oldestRow = rows(page).last();
    await oldestRow.getByText("flaky").first().waitFor();
    const rowCount = await rows(page).count();
    for (let n = 0; n < rowCount; n += 1) await page.keyboard.press("j");
    await page.locator("tr.current").waitFor();
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "flaky" }).waitFor();
  });
});

test("stream: names chosen by users are rendered as text", async () => {
  await openPage(`/stream?key=${encodeURIComponent(HOSTILE_TEXT)}`, async (page) => {
    await page.getByText("record.changed").first().waitFor();
    assert.equal(await page.locator("tbody img, tbody script").count(), 0);
    await checkScreen(page, "stream-hostile");
  });
});

test("stream: a tenant token sees its own events", async () => {
  await openPage("/stream", async (page) => {
    await page.getByText("theirs:1").first().waitFor();
    assert.equal(await page.getByText("record:1").count(), 0);
    assert.equal(await page.getByLabel("Tenant").count(), 0);
  }, { role: "shop" });
});

test("stream: a thousand events per second do not block the page", async () => {
  await openPage("/stream?return=flood", async (page) => {
    await page.getByText("Live", { exact: true }).waitFor();
    await page.evaluate(async () => {
      const { RingBuffer } = await import("/console/dev/data/ring-buffer.js");
      const { push } = RingBuffer.prototype;
      window.frameStats = { frames: 0, deliveries: 0, maxDeliveries: 0, longestMs: 0 };
      let deliveries = 0;
      RingBuffer.prototype.push = function (list) {
        deliveries += 1;
        push.call(this, list);
      };
      let previousFrameAt = performance.now();
      const countFrame = (now) => {
        const { frameStats } = window;
        frameStats.frames += 1;
        frameStats.deliveries += deliveries;
        frameStats.maxDeliveries = Math.max(frameStats.maxDeliveries, deliveries);
        frameStats.longestMs = Math.max(frameStats.longestMs, now - previousFrameAt);
        deliveries = 0;
        previousFrameAt = now;
        requestAnimationFrame(countFrame);
      };
      requestAnimationFrame(countFrame);
    });
    const browser = page.context().browser();
    await browser.startTracing(page, { categories: ["toplevel"] });
    const startedAt = Date.now();
    for (let batch = 0; batch < 60; batch += 1) {
      const batchAt = startedAt + batch * 100;
      await new Promise((resolve) => setTimeout(resolve, Math.max(0, batchAt - Date.now())));
      await testServer.emit(Array.from({ length: 100 }, (_, n) => ({ type: "flood", key: `flood:${n}`, value: { batch, n, text: "some text" } })));
    }
    await page.getByText("5,000 shown, 1,000 older ones removed").waitFor();
    const seconds = (Date.now() - startedAt) / 1000;
    const taskTimes = mainThreadTaskTimes(JSON.parse((await browser.stopTracing()).toString()));
    const longestTaskMs = Math.max(...taskTimes);
    const share = taskTimes.reduce((sum, ms) => sum + ms, 0) / 1000 / seconds;
    const frameStats = await page.evaluate(() => window.frameStats);
    console.log(`6000 events in ${seconds.toFixed(1)} s: the main thread was busy for ${(share * 100).toFixed(0)} % of the time, at most ${longestTaskMs.toFixed(0)} ms at once, `
      + `with ${frameStats.deliveries} deliveries in ${frameStats.frames} frames; the longest time between two frames was ${frameStats.longestMs.toFixed(0)} ms`);
    // A key press waits for the running task of the main thread. These are CPU times, so other processes do not count.
    assert.ok(taskTimes.length > 100 && longestTaskMs < 100, `${taskTimes.length} tasks of the main thread, the longest of ${longestTaskMs} ms`);
    assert.ok(share < 0.6, `${share}`);
    // One delivery per frame. One that happens after its frame was counted is counted with the next frame.
    assert.ok(frameStats.maxDeliveries <= 2 && frameStats.deliveries <= frameStats.frames, JSON.stringify(frameStats));
    assert.ok(await countElements(page) < 1500, `${await countElements(page)} elements`);
  });
});

test("stream: an event that is read and streamed is shown once", async () => {
  await openPage("/stream?return=twice", async (page) => {
    await page.getByText("Live", { exact: true }).waitFor();
    const deliver = await bufferDeliveries(page);
    await page.route("**/api/v1/events?*", async (route) => {
      await testServer.emit({ type: "twice.first" });
      await route.continue();
    }, { times: 1 });
    await navigateTo(page, "/stream?return=twice,thrice");
    await page.getByText("twice.first").waitFor();
    await deliver();
    await testServer.emit({ type: "twice.second" });
    await page.getByText("twice.second").waitFor();
    assert.equal(await page.getByText("twice.first").count(), 1);
  });
});

// The last test: it lets the events of the others expire.
test("stream: a torn stream shows a gap and continues", async () => {
  await openPage("/stream?return=torn", async (page) => {
    await page.getByText("Live", { exact: true }).waitFor();
    const { events } = await testServer.emit({ type: "torn.before" });
    await page.getByText("torn.before").waitFor();
    await page.route("**/api/v1/stream*", (route) => route.abort());
    // While the page cannot reconnect, the journal expires unread events.
    await testServer.stopProcess();
    testServer.configure((yaml) => `${yaml}\njournal: {retain_events: 10_000, retain_for: 1s}\n`);
    await testServer.startProcess();
    await testServer.emit({ type: "torn.between" });
    await testServer.waitUntil(`/api/v1/events?after=${events[0].eventId}`, ({ TYPE }) => TYPE === "Torn");
    await testServer.stopProcess();
    testServer.configure();
    await testServer.startProcess();
    await page.unroute("**/api/v1/stream*");
    await page.getByText("Events are missing").waitFor();
    await page.locator(".row-gap").getByText("Torn stream").waitFor();
    await page.getByText("Live", { exact: true }).waitFor();
    await testServer.emit({ type: "torn.after" });
    await page.getByText("torn.after").waitFor();
    await checkScreen(page, "stream-torn");
    await page.getByRole("button", { name: "Reload" }).click();
    await page.getByText("Events are missing").waitFor({ state: "detached" });
    await page.getByText("torn.after").waitFor();
  }, { expectedErrors: /ERR_|Failed to load/ });
});

/** CPU milliseconds of each task of the main thread. */
function mainThreadTaskTimes({ traceEvents }) {
  const mainThread = traceEvents.find(({ name, args }) => name === "thread_name" && args.name === "CrRendererMain");
  return traceEvents.filter(({ name, pid, tid }) => name === "ThreadControllerImpl::RunTask" && pid === mainThread.pid && tid === mainThread.tid)
    .map(({ tdur = 0 }) => tdur / 1000);
}
