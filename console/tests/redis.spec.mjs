// The console on a Redis store: events that producers push themselves are shown like others.

import { test } from "node:test";
import { openPage } from "./browser.mjs";
import { redis } from "./redis.mjs";
import { HOSTILE_TEXT, testServer } from "./test-server.mjs";

/** Pushes events as a producer does in its own MULTI. @param {string} object @param {...string} events */
function pushToOutbox(object, ...events) {
  redis.runCommand("LPUSH", `${object}:events`, ...events);
  redis.runCommand("LPUSH", "objects.with.events", object);
}

test("redis: events pushed by a producer are streamed and handled", async () => {
  await openPage("/stream?key=pushed:1", async (page) => {
    await page.getByText("Live", { exact: true }).waitFor();
    pushToOutbox("pushed:1", ...[1, 2].map((n) => JSON.stringify({ type: "record.changed", value: { n, evil: HOSTILE_TEXT } })));
    await page.getByText("record.changed").nth(1).waitFor();
  });
  const allSucceeded = ({ tasks }) => tasks.length > 1 && tasks.every(({ status }) => status === "SUCCESS");
  await testServer.waitUntil("/api/v1/tasks?key=pushed:1", allSucceeded);
});

test("redis: invalid outbox entries are reported until they are removed", async () => {
  pushToOutbox("pushed:2", "no event", JSON.stringify({ type: "record.changed" }));
  await testServer.waitUntil("/healthz", ({ warnings }) => warnings.length === 1);
  await openPage("/overview", async (page) => {
    const attention = page.getByRole("region", { name: "Needs attention" });
    const notice = attention.getByText("1 outbox entry is not an event and was set aside", { exact: false });
    await notice.waitFor();
    redis.runCommand("DEL", "events.set.aside");
    await testServer.waitUntil("/healthz", ({ warnings }) => (warnings ?? []).length === 0);
    await testServer.emit({ type: "record.changed", key: "pushed:2" });
    await notice.waitFor({ state: "detached" });
  });
});
