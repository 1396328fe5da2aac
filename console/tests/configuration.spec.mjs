// The configuration: what is loaded, from where, reloads and their faults.

import assert from "node:assert/strict";
import { test } from "node:test";
import { look, visit } from "./browser.mjs";
import { EVIL, world } from "./world.mjs";

test("configuration: settings with their places, searched, defaults only if wished", async () => {
  await visit("/configuration", async (page) => {
    const settings = page.getByRole("region", { name: /^Settings,/ });
    await settings.getByText("store: sqlite:world.db").waitFor();
    await settings.getByText("pointsman.yml:1", { exact: true }).waitFor();
    await page.getByText("emits heartbeat, which is routed to no handler").waitFor();
    assert.equal(await settings.getByText("max_connections").count(), 0);
    await look(page, "configuration");
    await page.getByRole("button", { name: "Show defaults" }).click();
    await settings.getByText("max_connections: 1024").waitFor();
    await page.getByLabel("Search the settings").fill("timezone");
    await settings.getByText("store: sqlite:world.db").waitFor({ state: "detached" });
    await settings.getByText("timezone: Europe/Berlin").first().waitFor();
    await settings.getByText("sources:").waitFor();
    await page.getByLabel("Search the settings").fill("no such thing at all");
    await page.getByText("No setting matches.").waitFor();
  });
});

test("configuration: a change with faults is refused and told, a good one taken up; secrets stay secret", async () => {
  await visit("/configuration", async (page) => {
    await page.getByText("active since").waitFor();
    const before = await world.get("/api/v1/config");
    world.configure((yaml) => yaml.replace("\nhandlers:\n", `\nworkers: ${JSON.stringify(EVIL)}\nhandlers:\n  bad: {run: {http: 1, secret: hunter2}}\n`));
    await page.getByText("were not applied").waitFor();
    await page.getByText("Rejected").first().waitFor();
    await page.locator("pre").filter({ hasText: "onerror" }).first().waitFor();
    await look(page, "configuration-refused");
    const refused = await world.get("/api/v1/config");
    assert.equal(refused.loaded_at, before.loaded_at);
    assert.equal(refused.reloads.length, before.reloads.length + 1);
    assert.ok(!JSON.stringify(refused).includes("hunter2"));
    assert.equal(await page.getByText("hunter2").count(), 0);
    world.configure((yaml) => yaml.replace("\nhandlers:\n", "\nhandlers:\n  fresh: {run: {http: \"TARGET/x\", headers: {x-key: hunter2}}}\n".replace("TARGET", world.target.url)));
    await page.getByText("Applied").first().waitFor();
    await page.getByText("were not applied").waitFor({ state: "detached" });
    await page.getByText("fresh:").waitFor();
    await page.getByText('nothing routes to the handler "fresh"').waitFor();
    assert.equal(await page.getByText("hunter2").count(), 0);
    await page.locator(".setting", { hasText: "x-key" }).getByText("***").waitFor();
  });
  world.configure();
  await world.until("/api/v1/handlers", ({ handlers }) => !handlers.some(({ name }) => name === "fresh"));
});

test("configuration: for admins alone", async () => {
  await visit("/configuration", async (page) => {
    await page.getByText("This screen needs the role admin.").waitFor();
    assert.equal(await page.getByRole("link", { name: "Configuration" }).count(), 0);
    assert.equal(await page.getByRole("link", { name: "Audit" }).count(), 0);
  }, { role: "operator" });
});
