// What people do to orders: add, suspend, resume, change, remove.

import { api, encodePath, RawJson } from "../../data/api.js";
import { boundTenant } from "../../data/session.js";
import { promptUser } from "../../parts/prompt.js";
import { stringifyExact } from "../../parts/json.js";
import { runWithToast, showError, showToast } from "../../parts/toast.js";
import { html } from "../../parts/ui.js";
import { navigate, screenPaths } from "../../shell/router.js";

/** @typedef {import("../../data/api-types.js").Order} Order */
/** @typedef {import("../../data/api-types.js").Chain} Chain */

/** @param {string} path */
export function orderUrl(path) {
  return `/api/v1/orders/${encodePath(path)}`;
}

/** What is wrong with a text that is to be JSON. @param {string} text */
function jsonError(text) {
  try {
    JSON.parse(text);
    return null;
  } catch (error) {
    return `Not JSON: ${error instanceof Error ? error.message : error}`;
  }
}

/** Members as one JSON object; values that are `RawJson` are put in as they are, and those that are undefined left out.
 * @param {Record<string, string | number | RawJson | undefined>} members */
function buildRawJson(members) {
  const given = Object.entries(members).filter(([, value]) => value !== undefined);
  return new RawJson(`{${given.map(([name, value]) => `${JSON.stringify(name)}:${value instanceof RawJson ? value.text : JSON.stringify(value)}`).join(",")}}`);
}

/** @param {Order} order @param {() => void} after */
export async function suspendOrder({ path, tenant }, after) {
  if (await runWithToast(() => api.post(`${orderUrl(path)}/suspend`, undefined, { query: { tenant } }), `${path} is suspended`, `${path} was not suspended`)) after();
}

/** @param {Order} order @param {() => void} after */
export async function resumeOrder({ path, tenant }, after) {
  if (await runWithToast(() => api.post(`${orderUrl(path)}/resume`, undefined, { query: { tenant } }), `${path} is resumed`, `${path} was not resumed`)) after();
}

/** @param {Order} order @param {() => void} after */
export async function removeOrder({ path, tenant }, after) {
  const said = await promptUser({
    title: "Remove the order",
    text: html`<p><b class="mono">${path}</b> is deleted with its value and its waiting step. Finished steps are not undone.</p>`,
    action: "Remove",
    danger: true,
    fields: [],
  });
  if (said && await runWithToast(() => api.delete(orderUrl(path), { query: { tenant } }), `${path} is removed`, `${path} was not removed`)) after();
}

/** Asks for another value, node or time; only what differs is sent.
 * @param {Order} order @param {Chain | null} chain @param {() => void} after */
export async function changeOrder(order, chain, after) {
  const before = stringifyExact(order.value);
  const nodes = chain?.nodes.map((node) => node.id) ?? [];
  const said = await promptUser({
    title: "Change the order",
    text: html`<p>${order.suspended ? "The order is suspended: resume it afterwards." : "The change applies at once."}</p>`,
    action: "Change",
    fields: [
      { name: "value", label: "Value", value: before, required: true, lines: 8, fault: jsonError },
      { name: "node", label: "Node", value: order.node, choices: nodes.includes(order.node) ? nodes : [order.node, ...nodes] },
      { name: "at", label: "Not before", hint: "A time such as 2026-11-15T18:30:00Z. Empty: unchanged.", fault: timeError },
    ],
  });
  if (!said) return;
  const body = {
    value: said.value.trim() === before.trim() ? undefined : new RawJson(said.value),
    node: said.node === order.node ? undefined : said.node,
    at: said.at.trim() ? new Date(said.at.trim()).toISOString() : undefined,
  };
  if (Object.values(body).every((one) => one === undefined)) {
    showToast({ text: "Nothing was changed" });
    return;
  }
  if (await runWithToast(() => api.put(orderUrl(order.path), buildRawJson(body), { query: { tenant: order.tenant } }), `${order.path} is changed`, `${order.path} was not changed`)) after();
}

/** @param {string} text */
function timeError(text) {
  return Number.isNaN(Date.parse(text.trim())) ? "Not a time. Write it like 2026-11-15T18:30:00Z." : null;
}

/** @param {Chain} chain */
export async function addOrder(chain) {
  const steps = chain.nodes.map((node) => node.id);
  const said = await promptUser({
    title: "Add an order",
    text: html`<p>The order runs through <b class="mono">${chain.path}</b>.</p>`,
    action: "Add",
    fields: [
      { name: "id", label: "Id", hint: "Empty: a new number." },
      { name: "value", label: "Value", value: "{}", lines: 5, fault: jsonError },
      { name: "node", label: "Start node", value: steps[0], choices: steps },
      { name: "delay", label: "Delay", hint: "Such as 90s or 1h." },
      ...(boundTenant.value === null ? [{ name: "tenant", label: "Tenant", hint: "Empty: default." }] : []),
    ],
  });
  if (!said) return;
  const body = buildRawJson({
    path: said.id.trim() ? `${chain.path},${said.id.trim()}` : chain.path,
    value: said.value.trim() ? new RawJson(said.value) : undefined,
    node: said.node === steps[0] ? undefined : said.node,
    delay: said.delay.trim() || undefined,
    tenant: said.tenant?.trim() || undefined,
  });
  try {
    const added = await api.post("/api/v1/orders", body);
    showToast({ text: `${added.orders[0].path} was added` });
    navigate(screenPaths.order(added.orders[0].path, said.tenant?.trim()));
  } catch (error) {
    showError(error, "No order was added");
  }
}
