// The console beside a store on Redis: what producers leave there themselves is seen like all else.

import { test } from "node:test";
import { visit } from "./browser.mjs";
import { redis } from "./redis.mjs";
import { EVIL, world } from "./world.mjs";

/** What a producer does in its own MULTI. @param {string} object @param {...string} events */
function push(object, ...events) {
  redis.say("LPUSH", `${object}:events`, ...events);
  redis.say("LPUSH", "objects.with.events", object);
}

test("redis: events that a producer has left are in the stream, and handled", async () => {
  await visit("/stream?key=pushed:1", async (page) => {
    await page.getByText("Live", { exact: true }).waitFor();
    push("pushed:1", ...[1, 2].map((n) => JSON.stringify({ type: "record.changed", value: { n, evil: EVIL } })));
    await page.getByText("record.changed").nth(1).waitFor();
  });
  const done = ({ tasks }) => tasks.length > 1 && tasks.every(({ status }) => status === "SUCCESS");
  await world.until("/api/v1/tasks?key=pushed:1", done);
});

test("redis: what is no event is told of until somebody has seen to it", async () => {
  push("pushed:2", "no event", JSON.stringify({ type: "record.changed" }));
  await world.until("/healthz", ({ warnings }) => warnings.length === 1);
  await visit("/overview", async (page) => {
    const attention = page.getByRole("region", { name: "Needs attention" });
    const told = attention.getByText("1 outbox entry is not an event and was set aside", { exact: false });
    await told.waitFor();
    redis.say("DEL", "events.set.aside");
    await world.until("/healthz", ({ warnings }) => (warnings ?? []).length === 0);
    await world.emit({ type: "record.changed", key: "pushed:2" });
    await told.waitFor({ state: "detached" });
  });
});
