// The audit log: author, action, target and reason of each change.

import assert from "node:assert/strict";
import { test } from "node:test";
import { countElements, checkScreen, openPage } from "./browser.mjs";
import { HOSTILE_TEXT, testServer } from "./test-server.mjs";

test("audit: entries show author, action, target and reason, are filtered by the address, and appear live", async () => {
  await openPage("/audit", async (page) => {
    await page.getByRole("row").filter({ hasText: "busy" }).getByText("the-operator").waitFor();
    await page.getByText("for the tests").first().waitFor();
    await checkScreen(page, "audit");
    await page.getByLabel("Target or reason").fill("article,119");
    await page.getByRole("row").filter({ hasText: "busy" }).waitFor({ state: "detached" });
    await page.getByRole("row").filter({ hasText: "suspended" }).getByRole("link", { name: "/publish/article,119" }).waitFor();
    await page.getByRole("button", { name: "Clear" }).click();
    await page.getByRole("combobox", { name: "Action" }).selectOption("unpause");
    assert.match(await page.evaluate(() => location.hash), /action=unpause/);
    await page.getByRole("row").filter({ hasText: "suspended" }).waitFor({ state: "detached" });
    await page.getByRole("button", { name: "Clear" }).click();
    await testServer.put("/api/v1/handlers/quick/pause", { reason: `seen at once ${HOSTILE_TEXT}` });
    await page.getByText(`seen at once ${HOSTILE_TEXT}`).waitFor();
    await testServer.delete("/api/v1/handlers/quick/pause");
    await page.getByRole("row").filter({ hasText: "seen at once" }).getByRole("link", { name: "quick" }).click();
    await page.getByRole("heading", { name: "quick", exact: true }).waitFor();
  });
});

test("audit: a long audit log is read page by page", async () => {
  for (let n = 0; n < 130; n += 1) {
    await testServer.put("/api/v1/handlers/quick/pause", { reason: `page ${n}` });
    await testServer.delete("/api/v1/handlers/quick/pause");
  }
  await openPage("/audit", async (page) => {
    await page.getByText("the newest 200").waitFor();
    const box = page.getByRole("region", { name: "Audit entries, newest first" });
    for (let n = 0; n < 40 && await page.getByText("all entries").count() === 0; n += 1) {
      await box.evaluate((element) => element.scrollTo(0, element.scrollHeight));
      await page.waitForTimeout(100);
    }
    await page.getByText("all entries").waitFor();
    await box.evaluate((element) => element.scrollTo(0, element.scrollHeight));
    await page.getByRole("row").filter({ hasText: "3 orders" }).waitFor();
    assert.ok(await countElements(page) < 1500);
    await page.getByRole("combobox", { name: "Who" }).fill("unknown");
    await page.getByText("No entry matches").waitFor();
  });
});

test("audit: only admins can open it", async () => {
  await openPage("/audit", async (page) => {
    await page.getByText("This screen needs the role admin.").waitFor();
  }, { role: "operator" });
});
