// The audit: who changed what.

import assert from "node:assert/strict";
import { test } from "node:test";
import { elements, look, visit } from "./browser.mjs";
import { EVIL, world } from "./world.mjs";

test("audit: who did what and why, narrowed by the address, and new deeds as they are done", async () => {
  await visit("/audit", async (page) => {
    await page.getByRole("row").filter({ hasText: "busy" }).getByText("the-operator").waitFor();
    await page.getByText("for the tests").first().waitFor();
    await look(page, "audit");
    await page.getByLabel("Target or reason").fill("article,119");
    await page.getByRole("row").filter({ hasText: "busy" }).waitFor({ state: "detached" });
    await page.getByRole("row").filter({ hasText: "suspended" }).getByRole("link", { name: "/publish/article,119" }).waitFor();
    await page.getByRole("button", { name: "Clear" }).click();
    await page.getByRole("combobox", { name: "Action" }).selectOption("unpause");
    assert.match(await page.evaluate(() => location.hash), /action=unpause/);
    await page.getByRole("row").filter({ hasText: "suspended" }).waitFor({ state: "detached" });
    await page.getByRole("button", { name: "Clear" }).click();
    await world.put("/api/v1/handlers/quick/pause", { reason: `seen at once ${EVIL}` });
    await page.getByText(`seen at once ${EVIL}`).waitFor();
    await world.delete("/api/v1/handlers/quick/pause");
    await page.getByRole("row").filter({ hasText: "seen at once" }).getByRole("link", { name: "quick" }).click();
    await page.getByRole("heading", { name: "quick", exact: true }).waitFor();
  });
});

test("audit: however long it is, it is read page by page", async () => {
  for (let n = 0; n < 130; n += 1) {
    await world.put("/api/v1/handlers/quick/pause", { reason: `page ${n}` });
    await world.delete("/api/v1/handlers/quick/pause");
  }
  await visit("/audit", async (page) => {
    await page.getByText("the newest 200").waitFor();
    const box = page.getByRole("region", { name: "Audit entries, newest first" });
    for (let n = 0; n < 40 && await page.getByText("all entries").count() === 0; n += 1) {
      await box.evaluate((element) => element.scrollTo(0, element.scrollHeight));
      await page.waitForTimeout(100);
    }
    await page.getByText("all entries").waitFor();
    await box.evaluate((element) => element.scrollTo(0, element.scrollHeight));
    await page.getByRole("row").filter({ hasText: "3 orders" }).waitFor();
    assert.ok(await elements(page) < 1500);
    await page.getByRole("combobox", { name: "Who" }).fill("nobody at all");
    await page.getByText("No entry matches").waitFor();
  });
});

test("audit: for admins alone", async () => {
  await visit("/audit", async (page) => {
    await page.getByText("This screen needs the role admin.").waitFor();
  }, { role: "operator" });
});
