// The shell: login, roles, shortcuts, search, themes, and lost connections.

import assert from "node:assert/strict";
import { createServer } from "node:net";
import { test } from "node:test";
import { checkAccessibility, navigateTo, checkScreen, openPage } from "./browser.mjs";
import { HOSTILE_TEXT, testServer } from "./test-server.mjs";

test("shell: a token is entered, refused, accepted and removed at sign-out", async () => {
  await openPage("/", async (page) => {
    await page.getByLabel("Token").fill("pm_wrong");
    await checkScreen(page, "login");
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByText("Unknown token.").waitFor();
    await checkAccessibility(page, "login, refused");
    await page.getByLabel("Token").fill(testServer.tokens.producer);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByText("has the role producer").waitFor();
    await page.getByLabel("Token").fill(testServer.tokens.viewer);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByRole("heading", { name: "Overview" }).waitFor();
    assert.deepEqual(await page.evaluate(() => [sessionStorage.length, Object.keys(localStorage).includes("pointsman.token")]), [1, false]);
    await page.reload();
    await page.getByRole("heading", { name: "Overview" }).waitFor();
    await page.getByRole("button", { name: "Sign out" }).click();
    await page.getByLabel("Token").waitFor();
    assert.equal(await page.evaluate(() => sessionStorage.length), 0);
    await page.getByLabel("Token").fill(testServer.tokens.viewer);
    await page.getByLabel("Stay signed in").check();
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByRole("heading", { name: "Overview" }).waitFor();
    assert.equal(await page.evaluate(() => sessionStorage.length + Number("pointsman.token" in localStorage)), 1);
  }, { role: null, expectedErrors: /401/ });
});

test("shell: a link with a token signs in and is removed from the address", async () => {
  await openPage("/stream?key=record:1", async (page) => {
    await page.getByRole("heading", { name: "Stream" }).waitFor();
    assert.equal(await page.evaluate(() => location.hash), "#/stream?key=record:1");
  }, { role: "viewer" });
});

test("shell: a truncated or invalid response does not sign out", async () => {
  const body = JSON.stringify({ name: "the-viewer", role: "viewer", tenant: null });
  const head = (length, type = "application/json") => `HTTP/1.1 200 OK\r\ncontent-type: ${type}\r\ncontent-length: ${length}\r\nconnection: close\r\n\r\n`;
  const responses = [head(body.length) + body.slice(0, 9), head(4) + "<hi>", head(4) + "null", head(4, "text/html") + "<hi>", head(body.length) + body];
  let requestCount = 0;
  const brokenServer = createServer((socket) => {
    socket.once("data", () => socket.end(responses[requestCount++] ?? responses.at(-1)));
    socket.on("error", () => {});
  });
  await new Promise((resolve) => brokenServer.listen(0, "127.0.0.1", resolve));
  try {
    await openPage("/overview", async (page) => {
      await page.getByRole("heading", { name: "Overview" }).waitFor();
      await page.route("**/api/v1/me", (route) => route.continue({ url: `http://127.0.0.1:${brokenServer.address().port}/api/v1/me` }));
      await page.reload();
      await page.getByText("The server does not respond").waitFor();
      await page.getByText("The server sent an invalid response").waitFor();
      await page.getByRole("heading", { name: "Overview" }).waitFor();
      assert.equal(requestCount, 5);
    }, { role: "viewer", expectedErrors: /ERR_CONTENT_LENGTH_MISMATCH/ });
  } finally {
    brokenServer.close();
  }
});

test("shell: a role sees only the screens it may open", async () => {
  await openPage("/nodes", async (page) => {
    await page.getByText(/Not allowed with this token|Page not found/).waitFor();
    assert.equal(await page.getByRole("link", { name: "Nodes" }).count(), 0);
    assert.equal(await page.getByRole("link", { name: "Audit" }).count(), 0);
  }, { role: "shop" });
});

test("shell: keyboard shortcuts, palette and search work", async () => {
  await openPage("/overview", async (page) => {
    await page.getByRole("heading", { name: "Overview" }).waitFor();
    await page.keyboard.press("?");
    await page.getByRole("dialog", { name: "Keyboard shortcuts" }).waitFor();
    await checkAccessibility(page, "help");
    await page.keyboard.press("Escape");
    await page.keyboard.press("Control+k");
    await page.getByRole("combobox").fill("strea");
    await checkAccessibility(page, "palette");
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "Stream" }).waitFor();
    await page.keyboard.press("/");
    await page.getByRole("combobox").fill(String(testServer.publishedEvent.eventId));
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "record.published" }).waitFor();
    await page.keyboard.press("/");
    await page.getByRole("combobox").fill(HOSTILE_TEXT);
    await page.getByRole("option").first().waitFor();
    await page.keyboard.press("Escape");
    const readTheme = () => page.evaluate(() => document.documentElement.dataset.theme);
    const themeBefore = await readTheme();
    await page.keyboard.press("t");
    assert.notEqual(await readTheme(), themeBefore);
    await page.keyboard.press("u");
    await page.getByRole("button", { name: "UTC" }).waitFor();
  });
});

test("shell: on a phone the navigation is behind a button", async () => {
  await openPage("/overview", async (page) => {
    await page.getByRole("heading", { name: "Overview" }).waitFor();
    assert.equal(await page.getByRole("link", { name: "Stream" }).isVisible(), false);
    await page.getByRole("button", { name: "Screens" }).click();
    await checkAccessibility(page, "menu");
    await page.getByRole("link", { name: "Stream" }).click();
    await page.getByRole("heading", { name: "Stream" }).waitFor();
    assert.equal(await page.getByRole("link", { name: "Stream" }).isVisible(), false);
  }, { width: 400 });
});

test("shell: a link with another token replaces the current one only after a confirmation", async () => {
  await openPage("/stream", async (page) => {
    const tokenOwner = page.locator(".token-owner");
    const link = `${testServer.url}/#token=${testServer.tokens.viewer}&to=${encodeURIComponent("/tasks")}`;
    const readStoredToken = () => page.evaluate(() => sessionStorage.getItem("pointsman.token"));
    await tokenOwner.getByText("the-admin").waitFor();
    await page.goto(link);
    const dialog = page.getByRole("dialog", { name: "Use the token of this link?" });
    await dialog.getByText("the-viewer", { exact: true }).waitFor();
    await checkScreen(page, "link-token");
    await checkAccessibility(page, "prompt to switch the token");
    assert.equal(await readStoredToken(), testServer.tokens.admin);
    await dialog.getByRole("button").first().click();
    await dialog.waitFor({ state: "detached" });
    await page.reload();
    await page.getByRole("heading", { name: "Tasks" }).waitFor();
    await tokenOwner.getByText("the-admin").waitFor();
    assert.equal(await dialog.count(), 0);
    await page.goto(link);
    await page.getByRole("button", { name: "Switch to the-viewer" }).click();
    await tokenOwner.getByText("the-viewer").waitFor();
    assert.equal(await readStoredToken(), testServer.tokens.viewer);
  });
});

test("shell: a link with an unknown token keeps the current session", async () => {
  await openPage("/stream", async (page) => {
    await page.locator(".token-owner").getByText("the-admin").waitFor();
    await page.goto(`${testServer.url}/#token=pm_unknown`);
    await page.getByText("The link's token was not used").waitFor();
    await page.getByText("The server does not know this token. You are still signed in as the-admin.").waitFor();
    assert.equal(await page.getByText("Sign in again").count(), 0);
    await page.locator(".token-owner").getByText("the-admin").waitFor();
  }, { expectedErrors: /401/ });
});

test("shell: a link with an unknown token shows an error on the login page", async () => {
  await openPage("/", async (page) => {
    // The page reloads by itself when a token appears in its address.
    await page.goto(`${testServer.url}/#token=pm_unknown`);
    await page.getByText("The token of the link is not valid").waitFor();
    assert.equal(await page.getByText("no longer accepted").count(), 0);
  }, { role: null, expectedErrors: /401/ });
});

test("shell: a link signs in if the stored token is no longer accepted", async () => {
  await openPage("/", async (page) => {
    await page.getByLabel("Token").waitFor();
    await page.evaluate(() => sessionStorage.setItem("pointsman.token", "pm_no_longer_accepted"));
    await page.goto(`${testServer.url}/#token=${testServer.tokens.viewer}`);
    await page.locator(".token-owner").getByText("the-viewer").waitFor();
    assert.equal(await page.getByRole("dialog").count(), 0);
  }, { role: null, expectedErrors: /401/ });
});

test("shell: the window title names the screen, and the focus moves to an opened screen", async () => {
  await openPage("/tasks?key=record:1", async (page) => {
    await page.getByRole("link", { name: "index" }).first().waitFor();
    await page.keyboard.press("j");
    await page.keyboard.press("Enter");
    await page.waitForURL(/#\/tasks\/[^?]+$/);
    await page.getByRole("heading", { name: "Why it is waiting" }).or(page.getByRole("heading", { name: "Attempts" })).first().waitFor();
    const id = await page.evaluate(() => location.hash.split("/").at(-1));
    await page.waitForFunction((title) => document.title === title, `${id} · Task · Pointsman`);
    await page.waitForFunction(() => document.activeElement?.id === "main");
    await page.goBack();
    await page.getByRole("heading", { name: "Tasks" }).waitFor();
    await page.waitForFunction(() => document.title === "Tasks · Pointsman");
  });
});

test("shell: going back returns to the opened row", async () => {
  await testServer.emit(Array.from({ length: 150 }, (_, n) => ({ type: "scribe", key: `back:${n}` })));
  await openPage("/tasks?handler=scribe", async (page) => {
    const box = page.getByRole("region", { name: "Tasks" });
    const row = box.locator("tr", { hasText: "back:80" });
    await box.locator("tr", { hasText: "back:149" }).waitFor();
    await box.evaluate((element) => { element.scrollTop = 32 * 65; });
    for (const openRow of [() => row.getByRole("link", { name: "back:80" }).click(), () => row.click({ position: { x: 2, y: 10 } }), () => page.keyboard.press("Enter")]) {
      await row.waitFor();
      await openRow();
      await row.waitFor({ state: "detached" });
      await page.goBack();
      await row.and(page.locator(".current")).waitFor();
      assert.ok(await row.evaluate((element) => element.getBoundingClientRect().bottom < innerHeight), "the row is visible");
    }
  });
});

test("shell: a page that is not found shows possible reasons", async () => {
  await openPage("/tasks/none", async (page) => {
    await page.getByText("It may have expired").waitFor();
    await checkAccessibility(page, "not found");
  }, { expectedErrors: /404/ });
});

test("shell: a screen that could not be loaded appears when the server is back", async () => {
  await openPage("/stream", async (page) => {
    await page.getByText("Live", { exact: true }).waitFor();
    await testServer.stopProcess("SIGKILL");
    await navigateTo(page, "/failures");
    await page.getByText("This screen could not be loaded").waitFor();
    await checkAccessibility(page, "not loaded");
    await testServer.startProcess();
    await page.getByRole("heading", { name: "Failures" }).waitFor();
  }, { expectedErrors: /ERR_|network|Failed to (load|fetch)/i });
});

test("shell: an unknown address shows that no page was found", async () => {
  await openPage(`/nowhere/${encodeURIComponent(HOSTILE_TEXT)}`, async (page) => {
    await page.getByText("Page not found").waitFor();
    await navigateTo(page, "/overview");
    await page.getByRole("heading", { name: "Overview" }).waitFor();
  });
});

test("shell: a lost connection is shown, and no event is missed after reconnecting", async () => {
  await openPage("/stream?return=restart", async (page) => {
    await page.getByText("Live", { exact: true }).waitFor();
    await testServer.emit({ type: "restart.before", key: "restart:1" });
    await page.getByText("restart.before").waitFor();
    await testServer.stopProcess("SIGKILL");
    await page.getByText(/Not live|Reconnecting/).first().waitFor();
    await checkAccessibility(page, "not live");
    await testServer.startProcess();
    await testServer.emit({ type: "restart.after", key: "restart:1" });
    await page.getByText("restart.after").waitFor();
    assert.equal(await page.getByText("restart.before").count(), 1);
    await page.getByText("Live", { exact: true }).waitFor();
  }, { expectedErrors: /ERR_|network|Failed to load/i });
});

test("shell: a revoked token ends the session with a message", async () => {
  await openPage("/stream", async (page) => {
    await page.getByText("Live", { exact: true }).waitFor();
    testServer.configure((yaml) => yaml.replace(/.*the-viewer.*\n/, ""));
    await page.getByText("The token is no longer accepted").waitFor();
    assert.equal(await page.evaluate(() => sessionStorage.length), 0);
    testServer.configure();
    await testServer.waitUntil("/api/v1/me", ({ role }) => role === "viewer", "viewer");
  }, { role: "viewer", expectedErrors: /401/ });
});

test("shell: a late 401 of an earlier session does not sign out the current one", async () => {
  await openPage("/overview", async (page) => {
    const pendingRoutes = [];
    await page.route("**/metrics", (route) => pendingRoutes.push(route));
    await page.waitForRequest("**/metrics");
    await page.getByRole("button", { name: "Sign out" }).click();
    await page.getByLabel("Token").fill(testServer.tokens.operator);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByText("the-operator").waitFor();
    const [firstRoute] = pendingRoutes;
    const response = firstRoute.request().response();
    await firstRoute.fulfill({ status: 401, json: {} });
    await (await response).finished();
    await page.unroute("**/metrics");
    await navigateTo(page, "/stream");
    await page.getByText("Live", { exact: true }).waitFor();
    assert.equal(await page.getByText("the-operator").count(), 1);
  }, { role: "viewer", expectedErrors: /401/ });
});

test("shell: failed reads are repeated when the server is back", async () => {
  await openPage("/overview", async (page) => {
    await page.getByRole("region", { name: "Backlog by handler" }).waitFor();
    await testServer.stopProcess("SIGKILL");
    await page.getByText(/Not live|Reconnecting/).first().waitFor();
    await page.getByText("This may be out of date").waitFor();
    await testServer.startProcess();
    await page.getByText("This may be out of date").waitFor({ state: "detached" });
    await page.getByText("Live", { exact: true }).waitFor();
  }, { expectedErrors: /ERR_|network|Failed to load/i });
});
