// What people do to orders: add, suspend, resume, change, remove.

import { api, below, Written } from "../../data/api.js";
import { bound } from "../../data/session.js";
import { ask } from "../../parts/dialog.js";
import { stringify } from "../../parts/json.js";
import { attempt, tellError, toast } from "../../parts/toast.js";
import { html } from "../../parts/ui.js";
import { go, places } from "../../shell/router.js";

/** @typedef {import("../../data/bodies.js").Order} Order */
/** @typedef {import("../../data/bodies.js").Chain} Chain */

/** @param {string} path */
export function addressOf(path) {
  return `/api/v1/orders/${below(path)}`;
}

/** What is wrong with a text that is to be JSON. @param {string} text */
function notJson(text) {
  try {
    JSON.parse(text);
    return null;
  } catch (error) {
    return `Not JSON: ${error instanceof Error ? error.message : error}`;
  }
}

/** Members as one JSON object; values that are `Written` are put in as they are, and those that are undefined left out.
 * @param {Record<string, string | number | Written | undefined>} members */
function written(members) {
  const given = Object.entries(members).filter(([, value]) => value !== undefined);
  return new Written(`{${given.map(([name, value]) => `${JSON.stringify(name)}:${value instanceof Written ? value.text : JSON.stringify(value)}`).join(",")}}`);
}

/** @param {Order} order @param {() => void} after */
export async function suspend({ path, tenant }, after) {
  if (await attempt(() => api.post(`${addressOf(path)}/suspend`, undefined, { query: { tenant } }), `${path} is suspended`, `${path} was not suspended`)) after();
}

/** @param {Order} order @param {() => void} after */
export async function resume({ path, tenant }, after) {
  if (await attempt(() => api.post(`${addressOf(path)}/resume`, undefined, { query: { tenant } }), `${path} is resumed`, `${path} was not resumed`)) after();
}

/** @param {Order} order @param {() => void} after */
export async function remove({ path, tenant }, after) {
  const said = await ask({
    title: "Remove the order",
    text: html`<p><b class="mono">${path}</b> is deleted with its value and its waiting step. Finished steps are not undone.</p>`,
    action: "Remove",
    danger: true,
    fields: [],
  });
  if (said && await attempt(() => api.delete(addressOf(path), { query: { tenant } }), `${path} is removed`, `${path} was not removed`)) after();
}

/** Asks for another value, node or time; only what differs is sent.
 * @param {Order} order @param {Chain | null} chain @param {() => void} after */
export async function change(order, chain, after) {
  const before = stringify(order.value);
  const nodes = chain?.nodes.map((node) => node.id) ?? [];
  const said = await ask({
    title: "Change the order",
    text: html`<p>${order.suspended ? "The order is suspended: resume it afterwards." : "The change applies at once."}</p>`,
    action: "Change",
    fields: [
      { name: "value", label: "Value", value: before, required: true, lines: 8, fault: notJson },
      { name: "node", label: "Node", value: order.node, choices: nodes.includes(order.node) ? nodes : [order.node, ...nodes] },
      { name: "at", label: "Not before", hint: "A time such as 2026-11-15T18:30:00Z. Empty: unchanged.", fault: notTime },
    ],
  });
  if (!said) return;
  const body = {
    value: said.value.trim() === before.trim() ? undefined : new Written(said.value),
    node: said.node === order.node ? undefined : said.node,
    at: said.at.trim() ? new Date(said.at.trim()).toISOString() : undefined,
  };
  if (Object.values(body).every((one) => one === undefined)) {
    toast({ text: "Nothing was changed" });
    return;
  }
  if (await attempt(() => api.put(addressOf(order.path), written(body), { query: { tenant: order.tenant } }), `${order.path} is changed`, `${order.path} was not changed`)) after();
}

/** @param {string} text */
function notTime(text) {
  return Number.isNaN(Date.parse(text.trim())) ? "Not a time. Write it like 2026-11-15T18:30:00Z." : null;
}

/** @param {Chain} chain */
export async function add(chain) {
  const steps = chain.nodes.map((node) => node.id);
  const said = await ask({
    title: "Add an order",
    text: html`<p>The order runs through <b class="mono">${chain.path}</b>.</p>`,
    action: "Add",
    fields: [
      { name: "id", label: "Id", hint: "Empty: a new number." },
      { name: "value", label: "Value", value: "{}", lines: 5, fault: notJson },
      { name: "node", label: "Start node", value: steps[0], choices: steps },
      { name: "delay", label: "Delay", hint: "Such as 90s or 1h." },
      ...(bound.value === null ? [{ name: "tenant", label: "Tenant", hint: "Empty: default." }] : []),
    ],
  });
  if (!said) return;
  const body = written({
    path: said.id.trim() ? `${chain.path},${said.id.trim()}` : chain.path,
    value: said.value.trim() ? new Written(said.value) : undefined,
    node: said.node === steps[0] ? undefined : said.node,
    delay: said.delay.trim() || undefined,
    tenant: said.tenant?.trim() || undefined,
  });
  try {
    const added = await api.post("/api/v1/orders", body);
    toast({ text: `${added.orders[0].path} was added` });
    go(places.order(added.orders[0].path, said.tenant?.trim()));
  } catch (error) {
    tellError(error, "No order was added");
  }
}
