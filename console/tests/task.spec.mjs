// One task: why it waits, attempts, payload, result, log and actions.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { countElements, checkScreen, openPage } from "./browser.mjs";
import { HOSTILE_TEXT, testServer } from "./test-server.mjs";

const taskPath = (id) => `/tasks/${encodeURIComponent(id)}`;
const findTask = async (query, condition = () => true) =>
  (await testServer.waitUntil(`/api/v1/tasks?${new URLSearchParams(query)}`, ({ tasks }) => tasks.some(condition))).tasks.find(condition);
const readTask = (id) => testServer.get(`/api/v1/tasks/${encodeURIComponent(id)}`);

test("task: gates show in order why it waits, with links to blocking tasks", async () => {
  const { id } = await findTask({ handler: "strict", key: "strict:1" }, (task) => task.status === "SCHEDULED");
  const why = await testServer.get(`/api/v1/tasks/${id}/why`);
  const [head] = why.gates.find((gate) => gate.gate === "lane").tasks;
  await openPage(taskPath(id), async (page) => {
    const gates = page.getByRole("list", { name: "Conditions, in order" }).locator("> li");
    await gates.first().waitFor();
    assert.deepEqual(await gates.evaluateAll((list) => list.map((gate) => !gate.classList.contains("closed"))), why.gates.map((gate) => gate.open));
    await checkScreen(page, "task-why");
    await page.locator(".gate.first-closed").getByRole("link").first().click();
    await page.waitForFunction((hash) => location.hash === hash, `#${taskPath(head)}`);
    await page.locator(".why-summary").getByText("It failed for good and halts its lane").waitFor();
    await page.getByRole("button", { name: "Run again" }).waitFor();
    await page.getByRole("button", { name: "Cancel" }).waitFor();
    await page.getByText("it is bad").first().waitFor();
    await page.getByRole("link", { name: "tasks of the same object" }).click();
    await page.getByText("2 match").waitFor();
  });
});

test("task: a pause shows its author and reason as text", async () => {
  const { id } = await findTask({ handler: "busy", key: "busy:1" });
  await openPage(taskPath(id), async (page) => {
    await page.locator(".gate").getByText(HOSTILE_TEXT).waitFor();
    await page.locator(".gate-blockers").getByText("the pause of busy").waitFor();
    await page.getByText("the circuit breaker is open until").waitFor();
    await checkScreen(page, "task-rule");
  }, { role: "viewer" });
});

test("task: a task is run again and updated live", async () => {
  testServer.target.replies.draft = () => ({ status: 422, body: { log: [`not now ${HOSTILE_TEXT}`] } });
  await testServer.emit({ type: "draft", key: "task:1", value: { evil: HOSTILE_TEXT, [HOSTILE_TEXT]: 1 } });
  const { id } = await findTask({ key: "task:1" }, (task) => task.status === "FAILED");
  await openPage(taskPath(id), async (page) => {
    await page.getByRole("region", { name: "Error" }).getByText(HOSTILE_TEXT.slice(0, 19)).waitFor();
    await page.getByRole("group", { name: "Payload" }).getByText("<script>").first().waitFor();
    await page.getByRole("button", { name: "Run again" }).click();
    await page.getByText("2 attempts").waitFor();
    await checkScreen(page, "task-failed");
    testServer.target.replies.draft = () => ({ body: { log: ["well done"], result: { pages: 3, words: HOSTILE_TEXT } } });
    await page.keyboard.press("r");
    await page.getByText("3 attempts").waitFor();
    await page.getByText("well done", { exact: true }).waitFor();
    await page.getByRole("group", { name: "Result" }).getByText('"pages"').waitFor();
    assert.equal(await page.locator(".timeline .name").count(), 3);
    assert.deepEqual(await page.getByRole("region", { name: "Attempts" }).locator("tbody .badge").allInnerTexts(), ["Succeeded", "Failed", "Failed"]);
    const { status, attempt, attempts } = await readTask(id);
    assert.deepEqual([status, attempt, attempts.map(({ end }) => end)], ["SUCCESS", 3, ["failed", "failed", "succeeded"]]);
    assert.equal(await page.getByRole("button", { name: "Run again" }).count(), 0);
    await checkScreen(page, "task");
  }, { role: "operator" });
});

test("task: a task is cancelled after a confirmation, and a viewer cannot cancel", async () => {
  await testServer.emit({ type: "scribe", key: "task:2" });
  const { id } = await findTask({ key: "task:2" });
  await openPage(taskPath(id), async (page) => {
    await page.getByText("no worker has claimed tasks of scribe").first().waitFor();
    assert.equal(await page.getByRole("button", { name: /Cancel|Run again/ }).count(), 0);
  }, { role: "viewer" });
  await openPage(taskPath(id), async (page) => {
    await page.getByRole("button", { name: "Cancel" }).click();
    await page.getByRole("button", { name: "Dismiss" }).click();
    assert.equal((await readTask(id)).status, "SCHEDULED");
    await page.keyboard.press("c");
    await page.getByRole("dialog").getByRole("button", { name: "Cancel task" }).click();
    await page.getByText("Cancelled").first().waitFor();
    assert.equal((await readTask(id)).status, "CANCELED");
    await page.getByRole("button", { name: "Run again" }).waitFor();
  }, { role: "operator" });
});

test("task: payloads keep their digits, steps show the order's value, sources have none", async () => {
  const body = '{"type":"scribe","key":"task:3","value":{"long":12345678901234567890}}';
  await fetch(`${testServer.url}/api/v1/events`, { method: "POST", body, headers: { authorization: `Bearer ${testServer.tokens.admin}`, "content-type": "application/json" } });
  await openPage(taskPath((await findTask({ key: "task:3" })).id), (page) => page.getByText("12345678901234567890").waitFor());
  const stepTask = await findTask({ handler: "deploy", key: "/publish/article,118" });
  await openPage(taskPath(stepTask.id), async (page) => {
    await page.getByText("The current value of the order").waitFor();
    await page.getByText('"It fails"').waitFor();
    await checkScreen(page, "task-step");
  });
  await openPage(taskPath((await findTask({ source: "letters" })).id), (page) => page.getByText("without a payload").waitFor());
});

test("task: an unknown task is reported as not found", async () => {
  await openPage(taskPath(`${HOSTILE_TEXT}_00000000-0000`), (page) => page.getByText("Not found").waitFor(), { expectedErrors: /40[04]/ });
});

/** Creates a pulled task, and returns functions that claim it and call the worker API. */
async function createPulledTask(key) {
  await testServer.emit({ type: "scribe", key });
  const { id } = await findTask({ key });
  let fence;
  const claim = async () => {
    fence = undefined;
    while (fence === undefined) {
      const { tasks } = await testServer.post("/api/v1/worker/claim", { handlers: ["scribe"], max: 100, lease: "300s" });
      fence = tasks.find((task) => task.id === id)?.fence;
    }
  };
  const callWorkerApi = (call, body) => testServer.post(`/api/v1/worker/${id}/${call}`, { fence, ...body });
  await claim();
  return { id, callWorkerApi, claim };
}

test("task: its log is live, searchable and downloadable", async () => {
  const { id, callWorkerApi } = await createPulledTask("task:log");
  await openPage(taskPath(id), async (page) => {
    await page.getByText("No log lines yet").waitFor();
    await callWorkerApi("logs", { logs: ["alpha", { message: `two ${HOSTILE_TEXT}`, level: "error" }, "three\nlines\nof alpha", "\u001b[31mred\u001b[0m"] });
    const lines = page.locator(".log-line");
    await lines.nth(3).waitFor();
    await page.locator(".log").getByText(HOSTILE_TEXT).waitFor();
    await page.locator(".log").getByText("three ⏎ lines ⏎ of alpha").waitFor();
    assert.equal(await lines.nth(3).locator(".log-text").innerText(), "red");
    await checkScreen(page, "task-log");
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
    await callWorkerApi("done", { result: { done: true }, log: ["the last"] });
    await page.getByText("the last").waitFor();
    await page.getByText("Succeeded").first().waitFor();
    await page.getByText("5 lines", { exact: true }).waitFor();
  });
});

test("task: a log of 100,000 lines scrolls with few lines in the page", async () => {
  const { id, callWorkerApi, claim } = await createPulledTask("task:long");
  // An attempt may write 10,000 log lines.
  const writeLogPart = (part) => callWorkerApi("logs", { logs: Array.from({ length: 10_000 }, (_, n) => `line ${part * 10_000 + n}`) });
  for (let part = 0; part < 9; part += 1) {
    await writeLogPart(part);
    await testServer.post(`/api/v1/tasks/${id}/cancel`);
    if (part < 8) {
      await testServer.post(`/api/v1/tasks/${id}/retry`);
      await claim();
    }
  }
  await openPage(taskPath(id), async (page) => {
    await page.getByText("90,000 lines", { exact: true }).waitFor();
    // The log of a task that is run again is followed again.
    await page.getByRole("button", { name: "Run again" }).click();
    await claim();
    await writeLogPart(9);
    await page.getByText("100,000 lines, live").waitFor();
    // The log is followed: its end is visible.
    await page.getByText("line 99999", { exact: true }).waitFor();
    const elementCount = await countElements(page);
    assert.ok(elementCount < 1000, `${elementCount} elements are in the page`);
    const box = page.locator(".log");
    await box.evaluate((element) => { element.scrollTop = 0; });
    await page.getByText("line 0", { exact: true }).waitFor();
    // While scrolled up, new lines do not move the view.
    await testServer.post(`/api/v1/tasks/${id}/cancel`);
    await testServer.post(`/api/v1/tasks/${id}/retry`);
    await claim();
    await callWorkerApi("logs", { logs: ["and one more"] });
    await page.getByText("100,001 lines, live").waitFor();
    assert.equal(await box.evaluate((element) => element.scrollTop), 0);
    await page.getByLabel("Search the log").fill("line 7777");
    await page.getByText("11 lines found").waitFor();
    await page.getByLabel("Search the log").press("Shift+Enter");
    await page.getByText("line 77779", { exact: true }).first().waitFor();
    await page.getByRole("button", { name: "Follow" }).click();
    await page.getByText("and one more").waitFor();
    assert.ok((await countElements(page)) < 1000);
  });
});

test("task: a log continues after a restart without duplicate lines", async () => {
  const { id, callWorkerApi } = await createPulledTask("task:away");
  await openPage(taskPath(id), async (page) => {
    await callWorkerApi("logs", { logs: ["before"] });
    await page.locator(".log").getByText("before").waitFor();
    await testServer.stopProcess("SIGTERM");
    await page.getByText("not live").first().waitFor();
    await testServer.startProcess();
    await callWorkerApi("logs", { logs: ["after"] });
    await page.locator(".log").getByText("after").waitFor();
    assert.equal(await page.locator(".log-line").count(), 2);
  }, { expectedErrors: /ERR_|network|Failed to load/i });
});
