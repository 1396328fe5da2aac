// The configuration: settings, origins, reloads and their errors.

import assert from "node:assert/strict";
import { test } from "node:test";
import { checkScreen, openPage } from "./browser.mjs";
import { HOSTILE_TEXT, testServer } from "./test-server.mjs";

test("configuration: settings show their origin, can be searched, and include defaults on request", async () => {
  await openPage("/configuration", async (page) => {
    const settings = page.getByRole("region", { name: /^Settings,/ });
    await settings.getByText("store: sqlite:test.db").waitFor();
    await settings.getByText("pointsman.yml:1", { exact: true }).waitFor();
    await page.getByText("emits heartbeat, which is routed to no handler").waitFor();
    assert.equal(await settings.getByText("max_connections").count(), 0);
    await checkScreen(page, "configuration");
    await page.getByRole("button", { name: "Show defaults" }).click();
    await settings.getByText("max_connections: 1024").waitFor();
    await page.getByLabel("Search the settings").fill("timezone");
    await settings.getByText("store: sqlite:test.db").waitFor({ state: "detached" });
    await settings.getByText("timezone: Europe/Berlin").first().waitFor();
    await settings.getByText("sources:").waitFor();
    await page.getByLabel("Search the settings").fill("no such setting");
    await page.getByText("No setting matches.").waitFor();
  });
});

test("configuration: a faulty change is rejected with its errors, a good one applied; secrets stay hidden", async () => {
  await openPage("/configuration", async (page) => {
    await page.getByText("active since").waitFor();
    const before = await testServer.get("/api/v1/config");
    testServer.configure((yaml) => yaml.replace("\nhandlers:\n", `\nworkers: ${JSON.stringify(HOSTILE_TEXT)}\nhandlers:\n  bad: {run: {http: 1, secret: hunter2}}\n`));
    await page.getByText("were not applied").waitFor();
    await page.getByText("Rejected").first().waitFor();
    await page.locator("pre").filter({ hasText: "onerror" }).first().waitFor();
    await checkScreen(page, "configuration-rejected");
    const configAfterRejection = await testServer.get("/api/v1/config");
    assert.equal(configAfterRejection.loaded_at, before.loaded_at);
    assert.equal(configAfterRejection.reloads.length, before.reloads.length + 1);
    assert.ok(!JSON.stringify(configAfterRejection).includes("hunter2"));
    assert.equal(await page.getByText("hunter2").count(), 0);
    testServer.configure((yaml) => yaml.replace("\nhandlers:\n", "\nhandlers:\n  fresh: {run: {http: \"TARGET/x\", headers: {x-key: hunter2}}}\n".replace("TARGET", testServer.target.url)));
    await page.getByText("Applied").first().waitFor();
    await page.getByText("were not applied").waitFor({ state: "detached" });
    await page.getByText("fresh:").waitFor();
    await page.getByText('nothing routes to the handler "fresh"').waitFor();
    assert.equal(await page.getByText("hunter2").count(), 0);
    await page.locator(".setting", { hasText: "x-key" }).getByText("***").waitFor();
  });
  testServer.configure();
  await testServer.waitUntil("/api/v1/handlers", ({ handlers }) => !handlers.some(({ name }) => name === "fresh"));
});

test("configuration: only admins can open it", async () => {
  await openPage("/configuration", async (page) => {
    await page.getByText("This screen needs the role admin.").waitFor();
    assert.equal(await page.getByRole("link", { name: "Configuration" }).count(), 0);
    assert.equal(await page.getByRole("link", { name: "Audit" }).count(), 0);
  }, { role: "operator" });
});
