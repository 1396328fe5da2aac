// The frame: the way in and out, roles, keys, search, themes, and what happens when the server goes away.

import assert from "node:assert/strict";
import { createServer } from "node:net";
import { test } from "node:test";
import { accessible, goTo, look, visit } from "./browser.mjs";
import { EVIL, world } from "./world.mjs";

test("shell: a token is asked for, refused, taken, and forgotten", async () => {
  await visit("/", async (page) => {
    await page.getByLabel("Token").fill("pm_wrong");
    await look(page, "login");
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByText("Unknown token.").waitFor();
    await accessible(page, "login, refused");
    await page.getByLabel("Token").fill(world.tokens.producer);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByText("has the role producer").waitFor();
    await page.getByLabel("Token").fill(world.tokens.viewer);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByRole("heading", { name: "Overview" }).waitFor();
    assert.deepEqual(await page.evaluate(() => [sessionStorage.length, Object.keys(localStorage).includes("pointsman.token")]), [1, false]);
    await page.reload();
    await page.getByRole("heading", { name: "Overview" }).waitFor();
    await page.getByRole("button", { name: "Sign out" }).click();
    await page.getByLabel("Token").waitFor();
    assert.equal(await page.evaluate(() => sessionStorage.length), 0);
    await page.getByLabel("Token").fill(world.tokens.viewer);
    await page.getByLabel("Stay signed in").check();
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByRole("heading", { name: "Overview" }).waitFor();
    assert.equal(await page.evaluate(() => sessionStorage.length + Number("pointsman.token" in localStorage)), 1);
  }, { role: null, complaints: /401/ });
});

test("shell: a link that carries a token signs in and shows it to nobody", async () => {
  await visit("/stream?key=record:1", async (page) => {
    await page.getByRole("heading", { name: "Stream" }).waitFor();
    assert.equal(await page.evaluate(() => location.hash), "#/stream?key=record:1");
  }, { role: "viewer" });
});

test("shell: an answer that is cut off, or makes no sense, signs nobody out", async () => {
  const told = JSON.stringify({ name: "the-viewer", role: "viewer", tenant: null });
  const head = (length, type = "application/json") => `HTTP/1.1 200 OK\r\ncontent-type: ${type}\r\ncontent-length: ${length}\r\nconnection: close\r\n\r\n`;
  const answers = [head(told.length) + told.slice(0, 9), head(4) + "<hi>", head(4) + "null", head(4, "text/html") + "<hi>", head(told.length) + told];
  let asked = 0;
  const broken = createServer((socket) => {
    socket.once("data", () => socket.end(answers[asked++] ?? answers.at(-1)));
    socket.on("error", () => {});
  });
  await new Promise((resolve) => broken.listen(0, "127.0.0.1", resolve));
  try {
    await visit("/overview", async (page) => {
      await page.getByRole("heading", { name: "Overview" }).waitFor();
      await page.route("**/api/v1/me", (route) => route.continue({ url: `http://127.0.0.1:${broken.address().port}/api/v1/me` }));
      await page.reload();
      await page.getByText("The server does not respond").waitFor();
      await page.getByText("The server sent an invalid response").waitFor();
      await page.getByRole("heading", { name: "Overview" }).waitFor();
      assert.equal(asked, 5);
    }, { role: "viewer", complaints: /ERR_CONTENT_LENGTH_MISMATCH/ });
  } finally {
    broken.close();
  }
});

test("shell: a role sees what it may", async () => {
  await visit("/nodes", async (page) => {
    await page.getByText(/Not allowed with this token|Page not found/).waitFor();
    assert.equal(await page.getByRole("link", { name: "Nodes" }).count(), 0);
    assert.equal(await page.getByRole("link", { name: "Audit" }).count(), 0);
  }, { role: "shop" });
});

test("shell: keys, palette and search", async () => {
  await visit("/overview", async (page) => {
    await page.getByRole("heading", { name: "Overview" }).waitFor();
    await page.keyboard.press("?");
    await page.getByRole("dialog", { name: "Keyboard shortcuts" }).waitFor();
    await accessible(page, "help");
    await page.keyboard.press("Escape");
    await page.keyboard.press("Control+k");
    await page.getByRole("combobox").fill("strea");
    await accessible(page, "palette");
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "Stream" }).waitFor();
    await page.keyboard.press("/");
    await page.getByRole("combobox").fill(String(world.published.eventId));
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "record.published" }).waitFor();
    await page.keyboard.press("/");
    await page.getByRole("combobox").fill(EVIL);
    await page.getByRole("option").first().waitFor();
    await page.keyboard.press("Escape");
    const dark = () => page.evaluate(() => document.documentElement.dataset.theme);
    const before = await dark();
    await page.keyboard.press("t");
    assert.notEqual(await dark(), before);
    await page.keyboard.press("u");
    await page.getByRole("button", { name: "UTC" }).waitFor();
  });
});

test("shell: on a phone the screens are behind a button", async () => {
  await visit("/overview", async (page) => {
    await page.getByRole("heading", { name: "Overview" }).waitFor();
    assert.equal(await page.getByRole("link", { name: "Stream" }).isVisible(), false);
    await page.getByRole("button", { name: "Screens" }).click();
    await accessible(page, "menu");
    await page.getByRole("link", { name: "Stream" }).click();
    await page.getByRole("heading", { name: "Stream" }).waitFor();
    assert.equal(await page.getByRole("link", { name: "Stream" }).isVisible(), false);
  }, { width: 400 });
});

test("shell: a link with another token replaces the signed-in one only if the person agrees", async () => {
  await visit("/stream", async (page) => {
    const who = page.locator(".token-owner");
    const link = `${world.url}/#token=${world.tokens.viewer}&to=${encodeURIComponent("/tasks")}`;
    const stored = () => page.evaluate(() => sessionStorage.getItem("pointsman.token"));
    await who.getByText("the-admin").waitFor();
    await page.goto(link);
    const dialog = page.getByRole("dialog", { name: "Use the token of this link?" });
    await dialog.getByText("the-viewer", { exact: true }).waitFor();
    await look(page, "link-token");
    await accessible(page, "another token is offered");
    assert.equal(await stored(), world.tokens.admin);
    await dialog.getByRole("button").first().click();
    await dialog.waitFor({ state: "detached" });
    await page.reload();
    await page.getByRole("heading", { name: "Tasks" }).waitFor();
    await who.getByText("the-admin").waitFor();
    assert.equal(await dialog.count(), 0);
    await page.goto(link);
    await page.getByRole("button", { name: "Switch to the-viewer" }).click();
    await who.getByText("the-viewer").waitFor();
    assert.equal(await stored(), world.tokens.viewer);
  });
});

test("shell: a link whose token is unknown leaves the signed-in one alone", async () => {
  await visit("/stream", async (page) => {
    await page.locator(".token-owner").getByText("the-admin").waitFor();
    await page.goto(`${world.url}/#token=pm_unknown`);
    await page.getByText("The link's token was not used").waitFor();
    await page.getByText("The server does not know this token. You are still signed in as the-admin.").waitFor();
    assert.equal(await page.getByText("Sign in again").count(), 0);
    await page.locator(".token-owner").getByText("the-admin").waitFor();
  }, { complaints: /401/ });
});

test("shell: a link whose token is unknown says so to one who is signed out", async () => {
  await visit("/", async (page) => {
    await page.goto(`${world.url}/#token=pm_unknown`);
    await page.reload();
    await page.getByText("The token of the link is not valid").waitFor();
    assert.equal(await page.getByText("no longer accepted").count(), 0);
  }, { role: null, complaints: /401/ });
});

test("shell: a link signs in where the stored token is no longer accepted", async () => {
  await visit("/", async (page) => {
    await page.getByLabel("Token").waitFor();
    await page.evaluate(() => sessionStorage.setItem("pointsman.token", "pm_of_an_earlier_store"));
    await page.goto(`${world.url}/#token=${world.tokens.viewer}`);
    await page.locator(".token-owner").getByText("the-viewer").waitFor();
    assert.equal(await page.getByRole("dialog").count(), 0);
  }, { role: null, complaints: /401/ });
});

test("shell: windows are told apart by their titles, and keys go on in the screen that was opened", async () => {
  await visit("/tasks?key=record:1", async (page) => {
    await page.getByRole("link", { name: "index" }).first().waitFor();
    await page.keyboard.press("j");
    await page.keyboard.press("Enter");
    await page.getByText("Why it is waiting").or(page.getByText("Attempts")).first().waitFor();
    const id = await page.evaluate(() => location.hash.split("/").at(-1));
    await page.waitForFunction((title) => document.title === title, `${id} · Task · Pointsman`);
    assert.equal(await page.evaluate(() => document.activeElement?.id), "main");
    await page.goBack();
    await page.getByRole("heading", { name: "Tasks" }).waitFor();
    assert.equal(await page.title(), "Tasks · Pointsman");
  });
});

test("shell: going back leads to the row that was left", async () => {
  await world.emit(Array.from({ length: 150 }, (_, n) => ({ type: "scribe", key: `back:${n}` })));
  await visit("/tasks?handler=scribe", async (page) => {
    const box = page.getByRole("region", { name: "Tasks" });
    const row = box.locator("tr", { hasText: "back:80" });
    await box.locator("tr", { hasText: "back:149" }).waitFor();
    await box.evaluate((element) => { element.scrollTop = 32 * 65; });
    for (const leave of [() => row.getByRole("link", { name: "back:80" }).click(), () => row.click({ position: { x: 2, y: 10 } }), () => page.keyboard.press("Enter")]) {
      await row.waitFor();
      await leave();
      await row.waitFor({ state: "detached" });
      await page.goBack();
      await row.and(page.locator(".current")).waitFor();
      assert.ok(await row.evaluate((element) => element.getBoundingClientRect().bottom < innerHeight), "it is in sight");
    }
  });
});

test("shell: what is not there says why that may be", async () => {
  await visit("/tasks/none", async (page) => {
    await page.getByText("It may have expired").waitFor();
    await accessible(page, "not there");
  }, { complaints: /404/ });
});

test("shell: a screen that could not be loaded is there when the server is", async () => {
  await visit("/stream", async (page) => {
    await page.getByText("Live", { exact: true }).waitFor();
    await world.down("SIGKILL");
    await goTo(page, "/failures");
    await page.getByText("This screen could not be loaded").waitFor();
    await accessible(page, "not loaded");
    await world.up();
    await page.getByRole("heading", { name: "Failures" }).waitFor();
  }, { complaints: /ERR_|network|Failed to (load|fetch)/i });
});

test("shell: an address of nothing says so", async () => {
  await visit(`/nowhere/${encodeURIComponent(EVIL)}`, async (page) => {
    await page.getByText("Page not found").waitFor();
    await goTo(page, "/overview");
    await page.getByRole("heading", { name: "Overview" }).waitFor();
  });
});

test("shell: a server that goes away and comes back is told of, and nothing is missed", async () => {
  await visit("/stream?return=restart", async (page) => {
    await page.getByText("Live", { exact: true }).waitFor();
    await world.emit({ type: "restart.before", key: "restart:1" });
    await page.getByText("restart.before").waitFor();
    await world.down("SIGKILL");
    await page.getByText(/Not live|Reconnecting/).first().waitFor();
    await accessible(page, "not live");
    await world.up();
    await world.emit({ type: "restart.after", key: "restart:1" });
    await page.getByText("restart.after").waitFor();
    assert.equal(await page.getByText("restart.before").count(), 1);
    await page.getByText("Live", { exact: true }).waitFor();
  }, { complaints: /ERR_|network|Failed to load/i });
});

test("shell: a token that is taken back ends the session, and says so", async () => {
  await visit("/stream", async (page) => {
    await page.getByText("Live", { exact: true }).waitFor();
    world.configure((yaml) => yaml.replace(/.*the-viewer.*\n/, ""));
    await page.getByText("The token is no longer accepted").waitFor();
    assert.equal(await page.evaluate(() => sessionStorage.length), 0);
    world.configure();
    await world.until("/api/v1/me", ({ role }) => role === "viewer", "viewer");
  }, { role: "viewer", complaints: /401/ });
});

test("shell: what is refused to one who has left signs nobody else out", async () => {
  await visit("/overview", async (page) => {
    const held = [];
    await page.route("**/metrics", (route) => held.push(route));
    await page.waitForRequest("**/metrics");
    await page.getByRole("button", { name: "Sign out" }).click();
    await page.getByLabel("Token").fill(world.tokens.operator);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByText("the-operator").waitFor();
    const [first] = held;
    const answered = first.request().response();
    await first.fulfill({ status: 401, json: {} });
    await (await answered).finished();
    await page.unroute("**/metrics");
    await goTo(page, "/stream");
    await page.getByText("Live", { exact: true }).waitFor();
    assert.equal(await page.getByText("the-operator").count(), 1);
  }, { role: "viewer", complaints: /401/ });
});

test("shell: what is asked of a server that is not there is asked again when it is back", async () => {
  await visit("/overview", async (page) => {
    await page.getByRole("region", { name: "Backlog by handler" }).waitFor();
    await world.down("SIGKILL");
    await page.getByText(/Not live|Reconnecting/).first().waitFor();
    await page.getByText("This may be out of date").waitFor();
    await world.up();
    await page.getByText("This may be out of date").waitFor({ state: "detached" });
    await page.getByText("Live", { exact: true }).waitFor();
  }, { complaints: /ERR_|network|Failed to load/i });
});
