// One task: why it waits, its attempts, what it got and gave, its log, and what can be done to it.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { elements, look, visit } from "./browser.mjs";
import { EVIL, world } from "./world.mjs";

const at = (id) => `/tasks/${encodeURIComponent(id)}`;
const one = async (query, wished = () => true) =>
  (await world.until(`/api/v1/tasks?${new URLSearchParams(query)}`, ({ tasks }) => tasks.some(wished))).tasks.find(wished);
const detail = (id) => world.get(`/api/v1/tasks/${encodeURIComponent(id)}`);

test("task: the gates tell why it waits, in order, and lead to what holds it", async () => {
  const { id } = await one({ handler: "strict", key: "strict:1" }, (task) => task.status === "SCHEDULED");
  const why = await world.get(`/api/v1/tasks/${id}/why`);
  const [head] = why.gates.find((gate) => gate.gate === "lane").tasks;
  await visit(at(id), async (page) => {
    const gates = page.getByRole("list", { name: "Conditions, in order" }).locator("> li");
    await gates.first().waitFor();
    assert.deepEqual(await gates.evaluateAll((list) => list.map((gate) => !gate.classList.contains("shut"))), why.gates.map((gate) => gate.open));
    await look(page, "task-why");
    await page.locator(".gate.first").getByRole("link").first().click();
    await page.waitForFunction((hash) => location.hash === hash, `#${at(head)}`);
    await page.locator(".why-summary").getByText("It failed for good and holds its lane").waitFor();
    await page.getByRole("button", { name: "Run again" }).waitFor();
    await page.getByRole("button", { name: "Cancel" }).waitFor();
    await page.getByText("it is bad").first().waitFor();
    await page.getByRole("link", { name: "tasks of the same object" }).click();
    await page.getByText("2 match").waitFor();
  });
});

test("task: rules name who holds it and why, as text", async () => {
  const { id } = await one({ handler: "busy", key: "busy:1" });
  await visit(at(id), async (page) => {
    await page.locator(".gate").getByText(EVIL).waitFor();
    await page.locator(".gate-blockers").getByText("the pause of busy").waitFor();
    await page.getByText("the target is left alone until").waitFor();
    await look(page, "task-rule");
  }, { role: "viewer" });
});

test("task: it is run again, and what becomes of it is seen without a reload", async () => {
  world.target.replies.draft = () => ({ status: 422, body: { log: [`not now ${EVIL}`] } });
  await world.emit({ type: "draft", key: "task:1", value: { evil: EVIL, [EVIL]: 1 } });
  const { id } = await one({ key: "task:1" }, (task) => task.status === "FAILED");
  await visit(at(id), async (page) => {
    await page.getByRole("region", { name: "Error" }).getByText(EVIL.slice(0, 19)).waitFor();
    await page.getByRole("group", { name: "Payload" }).getByText("<script>").first().waitFor();
    await page.getByRole("button", { name: "Run again" }).click();
    await page.getByText("2 attempts").waitFor();
    await look(page, "task-failed");
    world.target.replies.draft = () => ({ body: { log: ["well done"], result: { pages: 3, words: EVIL } } });
    await page.keyboard.press("r");
    await page.getByText("3 attempts").waitFor();
    await page.getByText("well done", { exact: true }).waitFor();
    await page.getByRole("group", { name: "Result" }).getByText('"pages"').waitFor();
    assert.equal(await page.locator(".timeline .name").count(), 3);
    assert.deepEqual(await page.getByRole("region", { name: "Attempts" }).locator("tbody .badge").allInnerTexts(), ["Succeeded", "Failed", "Failed"]);
    const { status, attempt, attempts } = await detail(id);
    assert.deepEqual([status, attempt, attempts.map(({ end }) => end)], ["SUCCESS", 3, ["failed", "failed", "succeeded"]]);
    assert.equal(await page.getByRole("button", { name: "Run again" }).count(), 0);
    await look(page, "task");
  }, { role: "operator" });
});

test("task: it is cancelled after a question, and a viewer is not asked", async () => {
  await world.emit({ type: "scribe", key: "task:2" });
  const { id } = await one({ key: "task:2" });
  await visit(at(id), async (page) => {
    await page.getByText("no worker has asked for scribe").first().waitFor();
    assert.equal(await page.getByRole("button", { name: /Cancel|Run again/ }).count(), 0);
  }, { role: "viewer" });
  await visit(at(id), async (page) => {
    await page.getByRole("button", { name: "Cancel" }).click();
    await page.getByRole("button", { name: "Dismiss" }).click();
    assert.equal((await detail(id)).status, "SCHEDULED");
    await page.keyboard.press("c");
    await page.getByRole("dialog").getByRole("button", { name: "Cancel task" }).click();
    await page.getByText("Cancelled").first().waitFor();
    assert.equal((await detail(id)).status, "CANCELED");
    await page.getByRole("button", { name: "Run again" }).waitFor();
  }, { role: "operator" });
});

test("task: numbers of payloads keep their digits, steps show their order's value, sources have none", async () => {
  const body = '{"type":"scribe","key":"task:3","value":{"long":12345678901234567890}}';
  await fetch(`${world.url}/api/v1/events`, { method: "POST", body, headers: { authorization: `Bearer ${world.tokens.admin}`, "content-type": "application/json" } });
  await visit(at((await one({ key: "task:3" })).id), (page) => page.getByText("12345678901234567890").waitFor());
  const step = await one({ handler: "deploy", key: "/publish/article,118" });
  await visit(at(step.id), async (page) => {
    await page.getByText("The current value of the order").waitFor();
    await page.getByText('"It fails"').waitFor();
    await look(page, "task-step");
  });
  await visit(at((await one({ source: "letters" })).id), (page) => page.getByText("without a payload").waitFor());
});

test("task: one that is not there is told of", async () => {
  await visit(at(`${EVIL}_00000000-0000`), (page) => page.getByText("Not found").waitFor(), { complaints: /40[04]/ });
});

/** Makes a task that is pulled, and answers how to take it and write for it. */
async function pulled(key) {
  await world.emit({ type: "scribe", key });
  const { id } = await one({ key });
  let fence;
  const claim = async () => {
    fence = undefined;
    while (fence === undefined) {
      const { tasks } = await world.post("/api/v1/worker/claim", { handlers: ["scribe"], max: 100, lease: "300s" });
      fence = tasks.find((task) => task.id === id)?.fence;
    }
  };
  const say = (call, body) => world.post(`/api/v1/worker/${id}/${call}`, { fence, ...body });
  await claim();
  return { id, say, claim };
}

test("task: its log comes as it is written, is searched, and is downloaded", async () => {
  const { id, say } = await pulled("task:log");
  await visit(at(id), async (page) => {
    await page.getByText("No log lines yet").waitFor();
    await say("logs", { logs: ["alpha", { message: `two ${EVIL}`, level: "error" }, "three\nlines\nof alpha", "\u001b[31mred\u001b[0m"] });
    const lines = page.locator(".log-line");
    await lines.nth(3).waitFor();
    await page.locator(".log").getByText(EVIL).waitFor();
    await page.locator(".log").getByText("three ⏎ lines ⏎ of alpha").waitFor();
    assert.equal(await lines.nth(3).locator(".log-text").innerText(), "red");
    await look(page, "task-log");
    await page.keyboard.press("s");
    await page.keyboard.type("ALPHA");
    await page.getByText("2 lines found").waitFor();
    await page.keyboard.press("Enter");
    await page.getByText("1 of 2").waitFor();
    await page.keyboard.press("Enter");
    await page.getByText("2 of 2").waitFor();
    await page.locator(".log-opened pre").getByText("three\nlines\nof alpha").waitFor();
    assert.deepEqual(await page.locator(".log mark").allInnerTexts(), ["alpha", "alpha"]);
    await page.getByRole("button", { name: "Matches only" }).click();
    await page.waitForFunction(() => document.querySelectorAll(".log-line").length === 2);
    await page.getByLabel("Search the log").fill("");
    await page.getByRole("button", { name: "Errors" }).click();
    await page.waitForFunction(() => document.querySelectorAll(".log-line").length === 1);
    await page.getByRole("button", { name: "Errors" }).click();
    const [file] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "Download" }).click()]);
    const text = readFileSync(await file.path(), "utf8");
    assert.match(text, /^\S+ info alpha\n\S+ error two <img/);
    assert.equal(file.suggestedFilename(), `${id}.log`);
    await say("done", { result: { done: true }, log: ["the last"] });
    await page.getByText("the last").waitFor();
    await page.getByText("Succeeded").first().waitFor();
    await page.getByText("5 lines", { exact: true }).waitFor();
  });
});

test("task: a log of a hundred thousand lines scrolls, and few of them are in the page", async () => {
  const { id, say, claim } = await pulled("task:long");
  // An attempt may write ten thousand.
  const write = (part) => say("logs", { logs: Array.from({ length: 10_000 }, (_, n) => `line ${part * 10_000 + n}`) });
  for (let part = 0; part < 9; part += 1) {
    await write(part);
    await world.post(`/api/v1/tasks/${id}/cancel`);
    if (part < 8) {
      await world.post(`/api/v1/tasks/${id}/retry`);
      await claim();
    }
  }
  await visit(at(id), async (page) => {
    await page.getByText("90,000 lines", { exact: true }).waitFor();
    // A task that begins again is followed on.
    await page.getByRole("button", { name: "Run again" }).click();
    await claim();
    await write(9);
    await page.getByText("100,000 lines, live").waitFor();
    // It follows: the end is seen.
    await page.getByText("line 99999", { exact: true }).waitFor();
    const there = await elements(page);
    assert.ok(there < 1000, `${there} elements are in the page`);
    const box = page.locator(".log");
    await box.evaluate((element) => { element.scrollTop = 0; });
    await page.getByText("line 0", { exact: true }).waitFor();
    // Who scrolls up reads: nothing moves when more comes.
    await world.post(`/api/v1/tasks/${id}/cancel`);
    await world.post(`/api/v1/tasks/${id}/retry`);
    await claim();
    await say("logs", { logs: ["and one more"] });
    await page.getByText("100,001 lines, live").waitFor();
    assert.equal(await box.evaluate((element) => element.scrollTop), 0);
    await page.getByLabel("Search the log").fill("line 7777");
    await page.getByText("11 lines found").waitFor();
    await page.getByLabel("Search the log").press("Shift+Enter");
    await page.getByText("line 77779", { exact: true }).first().waitFor();
    await page.getByRole("button", { name: "Follow" }).click();
    await page.getByText("and one more").waitFor();
    assert.ok((await elements(page)) < 1000);
  });
});

test("task: a log goes on after the server was away, without a line twice", async () => {
  const { id, say } = await pulled("task:away");
  await visit(at(id), async (page) => {
    await say("logs", { logs: ["before"] });
    await page.locator(".log").getByText("before").waitFor();
    await world.down("SIGTERM");
    await page.getByText("not live").first().waitFor();
    await world.up();
    await say("logs", { logs: ["after"] });
    await page.locator(".log").getByText("after").waitFor();
    assert.equal(await page.locator(".log-line").count(), 2);
  }, { complaints: /ERR_|network|Failed to load/i });
});
