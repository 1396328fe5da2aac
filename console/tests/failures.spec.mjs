// Failures: grouping, the searched range, and the actions.

import assert from "node:assert/strict";
import { test } from "node:test";
import { checkScreen, openPage } from "./browser.mjs";
import { HOSTILE_TEXT, testServer } from "./test-server.mjs";

const groupRows = (page) => page.locator(".failures .table-box tbody tr:not(.spacer-row)");
const listTaskAttempts = async (tenant) => (await testServer.get(`/api/v1/tasks?tenant=${tenant}`)).tasks.map((task) => [task.key, task.status, task.attempt]).sort();

/** Creates failures whose kind depends on the key; ids and numbers differ. */
async function createFailures(tenant, kinds) {
  testServer.target.replies.draft = (_, headers) => ({ status: 422, body: { log: [`${kinds[headers["ce-subject"]]} at ${headers["ce-subject"]}, order ${Math.trunc(Math.random() * 1e9) + 1e9}`] } });
  await testServer.emit(Object.keys(kinds).map((key) => ({ type: "draft", key, tenant })));
  await testServer.waitUntil(`/api/v1/tasks?tenant=${tenant}&status=FAILED`, ({ tasks }) => tasks.length === Object.keys(kinds).length);
}

test("failures: similar errors form one group, and exactly its tasks are run again", async () => {
  await createFailures("fail-a", { "alpha:1": "torn", "alpha:2": "torn", "alpha:3": "torn", "beta:1": `cut ${HOSTILE_TEXT}`, "beta:2": `cut ${HOSTILE_TEXT}` });
  await openPage("/failures?tenant=fail-a", async (page) => {
    await page.getByText("5 failed tasks in 2 groups").waitFor();
    assert.deepEqual(await groupRows(page).locator("td:first-child").allInnerTexts(), ["3", "2"]);
    await groupRows(page).first().click();
    const groupDetail = page.getByRole("region", { name: "Failure group" });
    await groupDetail.getByText("torn at alpha").waitFor();
    assert.match(await page.evaluate(() => location.hash), /open=[0-9a-f]{8}/);
    await checkScreen(page, "failures");
    await page.getByRole("link", { name: "3 tasks" }).click();
    await page.waitForFunction(() => location.hash === "#/tasks?tenant=fail-a&handler=draft&status=FAILED");
    await page.goBack();
    testServer.target.replies.draft = () => ({});
    await groupDetail.getByRole("button", { name: "Run 3 again" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Run 3 again" }).click();
    await page.getByText("3 tasks of draft will be run again").waitFor();
    await page.getByText("2 failed tasks in 1 group").waitFor();
    // They may still be running when they no longer count as failed.
    for (let checks = 0; checks < 200 && (await listTaskAttempts("fail-a")).some(([, status]) => status === "RUNNING" || status === "SCHEDULED"); checks += 1) {
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    assert.deepEqual(await listTaskAttempts("fail-a"), [
      ["alpha:1", "SUCCESS", 2], ["alpha:2", "SUCCESS", 2], ["alpha:3", "SUCCESS", 2], ["beta:1", "FAILED", 1], ["beta:2", "FAILED", 1]]);
    // The rest is all failures of the handler: a redrive is used.
    await groupRows(page).first().click();
    await groupDetail.getByText(HOSTILE_TEXT.slice(0, 19)).waitFor();
    await groupDetail.getByRole("button", { name: "Run 2 again" }).click();
    await page.getByRole("dialog", { name: "Redrive" }).getByText("2 tasks").waitFor();
    await page.getByRole("button", { name: "Run 2 again" }).last().click();
    await page.getByText("No failure matches").waitFor();
    const { redrives } = await testServer.get("/api/v1/redrives");
    assert.deepEqual([redrives[0].filter.tenant, redrives[0].filter.handler, redrives[0].retried], ["fail-a", "draft", 2]);
    await page.getByText("2 of 2").waitFor();
  }, { role: "operator" });
});

test("failures: new failures appear live", async () => {
  await openPage("/failures?tenant=fail-b", async (page) => {
    await page.getByText("No failure matches").waitFor();
    await checkScreen(page, "failures-none");
    await createFailures("fail-b", { "gamma:1": "lost" });
    await page.getByText("1 failed task in 1 group").waitFor();
    await page.getByText("lost at gamma:1").waitFor();
  }, { role: "viewer" });
});

test("failures: a viewer cannot run tasks again", async () => {
  await openPage("/failures", async (page) => {
    await groupRows(page).first().click();
    await page.getByRole("region", { name: "Failure group" }).waitFor();
    assert.equal(await page.getByRole("button", { name: /Run|Redrive/ }).count(), 0);
  }, { role: "viewer" });
});

/** Generates a failed task; `n` selects one of three kinds. */
function sampleFailure(n) {
  const at = new Date(1_794_700_000_000 - n * 1000).toISOString();
  const kind = ["error", "missing", "step"][n % 3];
  return { id: `h_x_00000000-0000-8000-8000-${String(n).padStart(12, "0")}`, source: "h", collection: "x", priority: 100, created_at: at, started_at: at, finished_at: at,
    status: "FAILED", state: kind === "missing" ? "missing" : "error", handler: `of-${kind}`, tenant: "default", key: kind === "step" ? `/a/chain,${n}` : HOSTILE_TEXT,
    event_id: kind === "step" ? null : 1, retries: 0, attempt: 1, planned_at: "", delay_until: "", error: kind === "missing" ? null : `broken ${HOSTILE_TEXT}` };
}

test("failures: the searched range is shown, and each kind has its own action", async () => {
  const TASK_COUNT = 7000;
  await openPage("/failures", async (page) => {
    await page.route("**/api/v1/tasks?*", (route) => {
      const from = Number(new URL(route.request().url()).searchParams.get("cursor") ?? 0);
      const tasks = Array.from({ length: Math.min(1000, TASK_COUNT - from) }, (_, n) => sampleFailure(from + n));
      return route.fulfill({ json: { eventId: 1, tasks, next: from + 1000 < TASK_COUNT ? String(from + 1000) : null } });
    });
    await page.reload();
    await page.getByText(/5,000 failed tasks in 3 groups, created since .* There are older ones\./).waitFor();
    await checkScreen(page, "failures-many");
    await page.getByRole("button", { name: "Search older tasks" }).click();
    await page.getByText("7,000 failed tasks in 3 groups").waitFor();
    await groupRows(page).filter({ hasText: "of-missing" }).click();
    await page.getByText("pointsman handlers adopt of-missing").waitFor();
    await groupRows(page).filter({ hasText: "of-step" }).click();
    await page.getByText("These are steps of orders").waitFor();
    await groupRows(page).filter({ hasText: "of-error" }).click();
    await page.getByRole("button", { name: "Run 2,334 again" }).waitFor();
  });
});

test("failures: a failed read is reported", async () => {
  await openPage("/failures?handler=no%20name", async (page) => {
    await page.getByText("The failures could not be loaded").waitFor();
  }, { expectedErrors: /400/ });
});
