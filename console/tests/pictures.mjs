// The pictures of the README: `node pictures.mjs BINARY`, from a shop that has been busy for two minutes. Check them
// before you commit them.

import assert from "node:assert/strict";
import { mkdirSync, statSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { startBrowser, stopBrowser, openPage } from "./browser.mjs";
import { testServer } from "./test-server.mjs";

const pictureDir = join(dirname(fileURLToPath(import.meta.url)), "../../docs/pictures");
/** How long traffic is generated: the charts show two minutes. */
const TRAFFIC_MS = 125_000;
const MAX_PICTURE_BYTES = 150_000;
const SAMPLE_TITLES = ["How we pack glass", "Ten years of the shop", "Tea from the valley", "A kettle for two", "Returns made easy", "The new catalogue"];

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

function setHandlerReplies() {
  const replyAfter = async (ms, reply) => {
    await sleep(ms);
    return reply;
  };
  let mails = 0;
  Object.assign(testServer.target.replies, {
    billing: (order, { "ce-subject": key }) => replyAfter(15, { body: {
      log: [`${order.items} items, ${order.total} EUR`],
      emit: [{ type: "order.paid", key, value: { total: order.total } }],
    } }),
    confirmation: () => (++mails % 9 ? replyAfter(10, {}) : { status: 451, body: { log: ["greylisted, try again later"] } }),
    shipping: (_, { "ce-subject": key }) => (key === "order:1042"
      ? { status: 422, body: { log: ["the carrier does not know this postcode yet"] } }
      : replyAfter(25, { body: { log: ["asking the carrier for a label", "label printed"] } })),
    search: () => replyAfter(5, {}),
    newsletter: (customer) => (customer.address.includes("@") ? replyAfter(10, {}) : { status: 422, body: { log: ["not a mail address"] } }),
    render: (step) => replyAfter(400, { body: { result: { ...step.value, pages: 2, typo: step.value.typo && step.node === "render" }, log: ["2 pages"] } }),
    proofread: (step) => (step.value.hold ? new Promise(() => {}) : replyAfter(900, step.value.typo
      ? { status: 422, body: { log: ["a word is missing on page 2"] } }
      : { body: { log: ["nothing to fix"] } })),
    deploy: (step) => (step.value.busy ? { status: 422, body: { log: ["the web server is being updated"] } } : replyAfter(300, { body: { log: ["online"] } })),
  });
}

/** @param {typeof testServer} server */
async function addShopData(server) {
  setHandlerReplies();
  await server.put("/api/v1/handlers/stock/pause", { reason: "stocktaking in hall 2 until 14:00" });
  await server.emit({ type: "order.placed", key: "order:1042", value: { items: 3, total: 59.9 }, context: { request: "7f3c" } });
  const orders = SAMPLE_TITLES.map((title, n) => ({ path: `/publish/article,${201 + n}`, value: { title, typo: n === 1, hold: n > 3, busy: n === 2 } }));
  await server.post("/api/v1/orders", [...orders, { path: "/publish/article,207", value: { title: "Spring sale" }, delay: "1h" }]);
}

/** Simulated customers, with varying load. */
async function generateTraffic() {
  const end = Date.now() + TRAFFIC_MS;
  for (let n = 0; Date.now() < end; n++) {
    const load = 3 + 2 * Math.sin(n / 30) + Math.sin(n / 7);
    const orders = Array.from({ length: Math.max(1, Math.round(load)) }, (_, m) => ({
      type: "order.placed", key: `order:${1100 + n * 8 + m}`, value: { items: 1 + ((n + m) % 5), total: 12.5 * (1 + ((n + m) % 5)) },
    }));
    const records = n % 2 ? [{ type: "record.changed", key: `record:${n % 40}`, value: { price: 10 + (n % 9) } }] : [];
    const customers = n % 12 === 0 ? [{ type: "customer.subscribed", key: `customer:${n}`, value: { address: n % 24 ? `c${n}@example.org` : "none" } }] : [];
    await testServer.emit([...orders, ...records, ...customers]);
    await sleep(400);
  }
}

/** @param {string} name @param {"dark" | "light"} theme @param {string} hash @param {(page: import("playwright-core").Page) => Promise<void>} waitUntilReady */
async function takePicture(name, theme, hash, waitUntilReady) {
  await openPage(hash, async (page) => {
    await page.emulateMedia({ colorScheme: theme });
    // Hides the host name of this machine.
    await page.route("**/why", async (route) => {
      const response = await route.fetch();
      await route.fulfill({ response, body: (await response.text()).replace(/pointsman-[\w.-]+-\d+/g, "shop-1") });
    });
    await waitUntilReady(page);
    await page.mouse.move(0, 0);
    await sleep(500);
    const path = join(pictureDir, `${name}.png`);
    await page.screenshot({ path });
    const { size } = statSync(path);
    assert.ok(size < MAX_PICTURE_BYTES, `${name} has ${size} bytes`);
    console.log(`${name}.png, ${Math.round(size / 1000)} kB`);
  });
}

async function takePictures() {
  mkdirSync(pictureDir, { recursive: true });
  await Promise.all([
    takePicture("overview", "dark", "/overview", generateTraffic),
    takeStaticPictures(),
  ]);
}

/** Pictures that do not depend on the load. */
async function takeStaticPictures() {
  await takePicture("schedules", "dark", "/schedules", (page) => page.getByText("nightly-report").first().waitFor());
  await takePicture("chain", "light", "/chains/publish/article", (page) => page.getByText("Retrying").waitFor());
  await sleep(TRAFFIC_MS / 3);
  const { tasks } = await testServer.waitUntil("/api/v1/tasks?handler=shipping&key=order:1042", ({ tasks }) => tasks[0]?.attempt >= 3);
  await takePicture("task", "light", `/tasks/${tasks[0].id}`, (page) => page.getByText("postcode").first().waitFor());
}

try {
  await testServer.start(resolve(process.argv[2]), "pictures.yml", addShopData);
  await startBrowser("pictures");
  await takePictures();
} finally {
  await stopBrowser();
  await testServer.stop();
}
