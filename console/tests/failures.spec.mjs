// Failures: put together by what they have in common, how far was looked, and the ways out.

import assert from "node:assert/strict";
import { test } from "node:test";
import { look, visit } from "./browser.mjs";
import { EVIL, world } from "./world.mjs";

const groups = (page) => page.locator(".failures .table-box tbody tr:not(.spacer-row)");
const attempts = async (tenant) => (await world.get(`/api/v1/tasks?tenant=${tenant}`)).tasks.map((task) => [task.key, task.status, task.attempt]).sort();

/** Each key has an error of its own kind; ids and numbers in it differ. */
async function fail(tenant, kinds) {
  world.target.replies.draft = (_, headers) => ({ status: 422, body: { log: [`${kinds[headers["ce-subject"]]} at ${headers["ce-subject"]}, order ${Math.trunc(Math.random() * 1e9) + 1e9}`] } });
  await world.emit(Object.keys(kinds).map((key) => ({ type: "draft", key, tenant })));
  await world.until(`/api/v1/tasks?tenant=${tenant}&status=FAILED`, ({ tasks }) => tasks.length === Object.keys(kinds).length);
}

test("failures: errors of one kind are one trouble, and exactly those are run again", async () => {
  await fail("fail-a", { "alpha:1": "torn", "alpha:2": "torn", "alpha:3": "torn", "beta:1": `cut ${EVIL}`, "beta:2": `cut ${EVIL}` });
  await visit("/failures?tenant=fail-a", async (page) => {
    await page.getByText("5 failed tasks in 2 groups").waitFor();
    assert.deepEqual(await groups(page).locator("td:first-child").allInnerTexts(), ["3", "2"]);
    await groups(page).first().click();
    const trouble = page.getByRole("region", { name: "Failure group" });
    await trouble.getByText("torn at alpha").waitFor();
    assert.match(await page.evaluate(() => location.hash), /open=[0-9a-f]{8}/);
    await look(page, "failures");
    await page.getByRole("link", { name: "3 tasks" }).click();
    await page.waitForFunction(() => location.hash === "#/tasks?tenant=fail-a&handler=draft&status=FAILED");
    await page.goBack();
    world.target.replies.draft = () => ({});
    await trouble.getByRole("button", { name: "Run 3 again" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Run 3 again" }).click();
    await page.getByText("3 tasks of draft will be run again").waitFor();
    await page.getByText("2 failed tasks in 1 group").waitFor();
    // They may still run when they no longer count as failed.
    for (let looks = 0; looks < 200 && (await attempts("fail-a")).some(([, status]) => status === "RUNNING" || status === "SCHEDULED"); looks += 1) {
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    assert.deepEqual(await attempts("fail-a"), [
      ["alpha:1", "SUCCESS", 2], ["alpha:2", "SUCCESS", 2], ["alpha:3", "SUCCESS", 2], ["beta:1", "FAILED", 1], ["beta:2", "FAILED", 1]]);
    // What is left is all of the handler's: a redrive does it.
    await groups(page).first().click();
    await trouble.getByText(EVIL.slice(0, 19)).waitFor();
    await trouble.getByRole("button", { name: "Run 2 again" }).click();
    await page.getByRole("dialog", { name: "Redrive" }).getByText("2 tasks").waitFor();
    await page.getByRole("button", { name: "Run 2 again" }).last().click();
    await page.getByText("No failure matches").waitFor();
    const { redrives } = await world.get("/api/v1/redrives");
    assert.deepEqual([redrives[0].filter.tenant, redrives[0].filter.handler, redrives[0].retried], ["fail-a", "draft", 2]);
    await page.getByText("2 of 2").waitFor();
  }, { role: "operator" });
});

test("failures: they appear as they happen", async () => {
  await visit("/failures?tenant=fail-b", async (page) => {
    await page.getByText("No failure matches").waitFor();
    await look(page, "failures-none");
    await fail("fail-b", { "gamma:1": "lost" });
    await page.getByText("1 failed task in 1 group").waitFor();
    await page.getByText("lost at gamma:1").waitFor();
  }, { role: "viewer" });
});

test("failures: a viewer may look and not run", async () => {
  await visit("/failures", async (page) => {
    await groups(page).first().click();
    await page.getByRole("region", { name: "Failure group" }).waitFor();
    assert.equal(await page.getByRole("button", { name: /Run|Redrive/ }).count(), 0);
  }, { role: "viewer" });
});

/** A failed task, made up: 7,000 of three kinds. */
function madeUp(n) {
  const at = new Date(1_794_700_000_000 - n * 1000).toISOString();
  const kind = ["error", "missing", "step"][n % 3];
  return { id: `h_x_00000000-0000-8000-8000-${String(n).padStart(12, "0")}`, source: "h", collection: "x", priority: 100, created_at: at, started_at: at, finished_at: at,
    status: "FAILED", state: kind === "missing" ? "missing" : "error", handler: `of-${kind}`, tenant: "default", key: kind === "step" ? `/a/chain,${n}` : EVIL,
    event_id: kind === "step" ? null : 1, retries: 0, attempt: 1, planned_at: "", delay_until: "", error: kind === "missing" ? null : `broken ${EVIL}` };
}

test("failures: how far was looked is told, and each kind has its way out", async () => {
  const MANY = 7000;
  await visit("/failures", async (page) => {
    await page.route("**/api/v1/tasks?*", (route) => {
      const from = Number(new URL(route.request().url()).searchParams.get("cursor") ?? 0);
      const tasks = Array.from({ length: Math.min(1000, MANY - from) }, (_, n) => madeUp(from + n));
      return route.fulfill({ json: { eventId: 1, tasks, next: from + 1000 < MANY ? String(from + 1000) : null } });
    });
    await page.reload();
    await page.getByText(/5,000 failed tasks in 3 groups, created since .* There are older ones\./).waitFor();
    await look(page, "failures-many");
    await page.getByRole("button", { name: "Search older tasks" }).click();
    await page.getByText("7,000 failed tasks in 3 groups").waitFor();
    await groups(page).filter({ hasText: "of-missing" }).click();
    await page.getByText("pointsman handlers adopt of-missing").waitFor();
    await groups(page).filter({ hasText: "of-step" }).click();
    await page.getByText("These are steps of orders").waitFor();
    await groups(page).filter({ hasText: "of-error" }).click();
    await page.getByRole("button", { name: "Run 2,334 again" }).waitFor();
  });
});

test("failures: what cannot be read is told", async () => {
  await visit("/failures?handler=no%20name", async (page) => {
    await page.getByText("The failures could not be loaded").waitFor();
  }, { complaints: /400/ });
});
