// Schedules: the week, the ledger, descriptions and warnings, running and pausing.

import assert from "node:assert/strict";
import { test } from "node:test";
import { navigateTo, checkScreen, openPage } from "./browser.mjs";
import { HOSTILE_TEXT, testServer } from "./test-server.mjs";

const readSchedule = (name) => testServer.get(`/api/v1/schedules/${encodeURIComponent(name)}`);

test("schedules: the week view lists frequent schedules apart, and shows later weeks", async () => {
  await openPage("/schedules", async (page) => {
    const frequent = page.getByRole("list", { name: "Frequent schedules" });
    await frequent.getByText("every 3 seconds").waitFor();
    await frequent.getByText("every 5 minutes, at second 0").waitFor();
    assert.ok(await page.locator(".day").getByText("nightly").count() >= 6);
    await checkScreen(page, "schedules");
    await page.getByRole("button", { name: "Next week" }).click();
    await page.locator(".day").getByText("digest").waitFor();
    assert.equal(await page.locator(".day").getByText("nightly").count(), 7);
    assert.match(await page.evaluate(() => location.hash), /from=\d{4}-\d\d-\d\d/);
    assert.equal(await page.locator(".day.today").count(), 0);
    assert.deepEqual(new Set(await page.locator(".agenda-entry", { hasText: "nightly" }).locator("time").allTextContents()), new Set(["03:00"]));
    await page.keyboard.press("u");
    await page.locator(".agenda-entry", { hasText: "nightly" }).locator("time").filter({ hasText: /^0[12]:00$/ }).first().waitFor();
    await page.keyboard.press("u");
    await page.getByRole("button", { name: "Next week" }).click();
    await page.getByRole("button", { name: "Previous week" }).click();
    await page.locator(".day").getByText("digest").waitFor();
    await page.getByRole("button", { name: "Today" }).click();
    await page.locator(".day.today").waitFor();
    await page.getByLabel("Name").fill("digest");
    await frequent.waitFor({ state: "detached" });
    await page.locator(".day").getByText("nightly").first().waitFor({ state: "detached" });
  });
});

test("schedules: the agenda groups fires by day", async () => {
  await openPage("/schedules", async (page) => {
    const { frequent, days } = await page.evaluate(async () => {
      const { buildAgenda } = await import(new URL("screens/schedules/agenda.js", document.querySelector("script[type=module]").src).href);
      const dayMs = 86_400_000;
      const midnights = Array.from({ length: 8 }, (_, n) => n * dayMs);
      const scheduleFiringEvery = (name, ms, from, to) => ({ name, next: Array.from({ length: Math.floor((to - from) / ms) }, (_, n) => new Date(from + n * ms).toISOString()) });
      const agenda = buildAgenda([scheduleFiringEvery("hourly", 3_600_000, 0, 7 * dayMs), scheduleFiringEvery("daily", dayMs, 3_600_000, 7 * dayMs + 1), scheduleFiringEvery("morning", 1_800_000, 2 * dayMs, 2 * dayMs + 36_000_000)], midnights);
      return { frequent: agenda.frequent.map(({ name }) => name), days: agenda.days.map(({ entries }) => entries.map(({ schedule, times }) => [schedule.name, times])) };
    });
    assert.deepEqual(frequent, ["hourly"]);
    assert.deepEqual(days[0], [["daily", 1]]);
    assert.deepEqual(days[2], [["morning", 20], ["daily", 1]]);
  });
});

test("schedules: the list shows the last outcome", async () => {
  await openPage("/schedules?view=list", async (page) => {
    const beatRow = page.getByRole("row").filter({ has: page.getByRole("link", { name: "beat", exact: true }) });
    await beatRow.getByText("Fired").waitFor();
    await beatRow.getByText("Warning").waitFor();
    await checkScreen(page, "schedules-list");
    await page.getByLabel("State").selectOption("held");
    await page.getByText("No schedule matches").waitFor();
    await page.getByRole("button", { name: "Clear" }).click();
    await page.getByRole("cell", { name: "shop/orders", exact: true }).getByRole("link").click();
    await page.getByRole("heading", { name: "shop/orders" }).waitFor();
    await page.getByText("Europe/Berlin").first().waitFor();
  }, { role: "viewer" });
});

test("schedules: the detail page shows a description, warnings and a live ledger", async () => {
  await openPage("/schedules/beat", async (page) => {
    await page.getByText("fires 28,800 times a day: every 3 seconds").waitFor();
    await page.getByText("emits heartbeat, which is routed to no handler").waitFor();
    await page.locator(".schedule-description").getByText("every 3 seconds").waitFor();
    const rows = page.getByRole("table").locator("tbody tr");
    await rows.first().waitFor();
    const rowCountBefore = await page.locator(".table-box table").getAttribute("aria-rowcount");
    await page.waitForFunction((rowCountBefore) => Number(document.querySelector(".table-box table")?.getAttribute("aria-rowcount")) > rowCountBefore, Number(rowCountBefore));
    await checkScreen(page, "schedule");
    await rows.first().getByRole("link").click();
    await page.getByRole("heading", { name: "heartbeat" }).waitFor();
    await navigateTo(page, "/schedules/unknown");
    await page.getByText("Not found").waitFor();
  }, { expectedErrors: /404/ });
});

test("schedules: an operator runs a schedule now, which creates an order, event or task", async () => {
  const countReports = async () => (await testServer.get("/api/v1/events?return=report.due&limit=-100")).eventSnapshots?.length ?? 0;
  const reportCountBefore = await countReports();
  await openPage("/schedules/nightly", async (page) => {
    await page.getByRole("button", { name: "Run now" }).click();
    await page.getByText("nightly was run").waitFor();
    assert.equal(await countReports(), reportCountBefore + 1);
    await navigateTo(page, "/schedules/digest");
    await page.getByText("adds an order to").waitFor();
    await page.getByRole("button", { name: "Run now" }).click();
    await page.getByText("digest was run").waitFor();
    await navigateTo(page, "/schedules/shop%2Forders");
    await page.getByText("runs shop/orders").waitFor();
    await page.getByRole("button", { name: "Run now" }).click();
    await page.getByText(/shop\/orders (was run|is queued)/).waitFor();
    const audit = await testServer.get("/api/v1/audit?limit=3");
    assert.deepEqual(audit.entries.map(({ by, action }) => [by, action]), Array(3).fill(["the-operator", "run"]));
  }, { role: "operator" });
  await openPage("/schedules/nightly", async (page) => {
    await page.getByText("Not paused or blocked.").waitFor();
    for (const name of ["Run now", "Pause", "Block"]) assert.equal(await page.getByRole("button", { name }).count(), 0, name);
  }, { role: "viewer" });
});

test("schedules: a paused schedule skips its times with a reason; after it is resumed, the last time is caught up", async () => {
  await openPage("/schedules/beat", async (page) => {
    await page.getByRole("button", { name: "Pause" }).click();
    assert.equal(await page.getByLabel("Tenant").count(), 0, "a schedule has no tenants");
    await page.getByLabel("Reason").fill(`too loud ${HOSTILE_TEXT}`);
    await page.getByRole("dialog").getByRole("button", { name: "Pause" }).click();
    await page.getByText(`too loud ${HOSTILE_TEXT}`).waitFor();
    const { held, rules } = await readSchedule("beat");
    assert.deepEqual([held, rules[0].reason, rules[0].by], [true, `too loud ${HOSTILE_TEXT}`, "the-operator"]);
    await page.getByText("Skipped: on hold").first().waitFor();
    await page.getByText("paused or blocked").first().waitFor();
    await checkScreen(page, "schedule-paused");
    await page.getByRole("button", { name: "Resume" }).click();
    await page.getByText("Not paused or blocked.").waitFor();
    assert.equal((await readSchedule("beat")).held, false);
    await page.getByText("Caught up").first().waitFor();
  }, { role: "operator" });
});

test("schedules: an operator cannot run a blocked schedule", async () => {
  await openPage("/schedules/nightly", async (page) => {
    await page.getByRole("button", { name: "Block" }).click();
    await page.getByLabel("Reason").fill("wrong figures");
    await page.getByRole("dialog").getByRole("button", { name: "Block" }).click();
    await page.getByRole("button", { name: "Unblock" }).waitFor();
    assert.equal((await readSchedule("nightly")).rules[0].kind, "block");
    await openPage("/schedules/nightly", async (other) => {
      await other.getByText("wrong figures").waitFor();
      assert.ok(await other.getByRole("button", { name: "Run now" }).isDisabled());
    }, { role: "operator" });
    await navigateTo(page, "/schedules");
    await page.locator(".agenda-entry.paused").first().waitFor();
    await navigateTo(page, "/schedules/nightly");
    await page.getByRole("button", { name: "Unblock" }).click();
    await page.getByText("Not paused or blocked.").waitFor();
    assert.equal((await readSchedule("nightly")).held, false);
  });
});
