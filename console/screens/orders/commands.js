// Commands on orders: add, suspend, resume, change, remove.

import { api, encodeOrderOrChainPath, RawJson } from "../../data/api.js";
import { boundTenant } from "../../data/session.js";
import { promptUser } from "../../parts/prompt.js";
import { stringifyExact } from "../../parts/json.js";
import { runWithToast } from "../../parts/actions.js";
import { showError, showToast } from "../../parts/toast.js";
import { html } from "../../parts/ui.js";
import { navigate, screenPaths } from "../../shell/router.js";

/** @typedef {import("../../data/api-types.js").Order} Order */
/** @typedef {import("../../data/api-types.js").Chain} Chain */

/** @param {string} path */
export function orderUrl(path) {
  return `/api/v1/orders/${encodeOrderOrChainPath(path)}`;
}

/** The error of a text that is not JSON, or null. @param {string} text */
function findJsonError(text) {
  try {
    JSON.parse(text);
    return null;
  } catch (error) {
    return `Not JSON: ${error instanceof Error ? error.message : error}`;
  }
}

/** Builds a JSON object. `RawJson` values are inserted unchanged, undefined ones left out.
 * @param {Record<string, string | number | RawJson | undefined>} members */
function buildRawJson(members) {
  const present = Object.entries(members).filter(([, value]) => value !== undefined);
  return new RawJson(`{${present.map(([name, value]) => `${JSON.stringify(name)}:${value instanceof RawJson ? value.text : JSON.stringify(value)}`).join(",")}}`);
}

/** @param {Order} order @param {() => void} onChange */
export async function suspendOrder({ path, tenant }, onChange) {
  if (await runWithToast(() => api.post(`${orderUrl(path)}/suspend`, undefined, { query: { tenant } }), `${path} is suspended`, `${path} was not suspended`)) onChange();
}

/** @param {Order} order @param {() => void} onChange */
export async function resumeOrder({ path, tenant }, onChange) {
  if (await runWithToast(() => api.post(`${orderUrl(path)}/resume`, undefined, { query: { tenant } }), `${path} is resumed`, `${path} was not resumed`)) onChange();
}

/** @param {Order} order @param {() => void} onChange */
export async function confirmAndRemoveOrder({ path, tenant }, onChange) {
  const values = await promptUser({
    title: "Remove the order",
    text: html`<p><b class="mono">${path}</b> is deleted with its value and its waiting step. Finished steps are not undone.</p>`,
    actionLabel: "Remove",
    danger: true,
    fields: [],
  });
  if (values && await runWithToast(() => api.delete(orderUrl(path), { query: { tenant } }), `${path} is removed`, `${path} was not removed`)) onChange();
}

/** Asks for a new value, node or time, and sends the changed fields.
 * @param {Order} order @param {Chain | null} chain @param {() => void} onChange */
export async function promptAndChangeOrder(order, chain, onChange) {
  const valueBefore = stringifyExact(order.value);
  const nodeIds = chain?.nodes.map((node) => node.id) ?? [];
  const values = await promptUser({
    title: "Change the order",
    text: html`<p>${order.suspended ? "The order is suspended: resume it afterwards." : "The change applies at once."}</p>`,
    actionLabel: "Change",
    fields: [
      { name: "value", label: "Value", value: valueBefore, required: true, rows: 8, validate: findJsonError },
      { name: "node", label: "Node", value: order.node, choices: nodeIds.includes(order.node) ? nodeIds : [order.node, ...nodeIds] },
      { name: "at", label: "Not before", hint: "A time such as 2026-11-15T18:30:00Z. Empty: unchanged.", validate: findTimeError },
    ],
  });
  if (!values) return;
  const body = {
    value: values.value.trim() === valueBefore.trim() ? undefined : new RawJson(values.value),
    node: values.node === order.node ? undefined : values.node,
    at: values.at.trim() ? new Date(values.at.trim()).toISOString() : undefined,
  };
  if (Object.values(body).every((member) => member === undefined)) {
    showToast({ text: "Nothing was changed" });
    return;
  }
  if (await runWithToast(() => api.put(orderUrl(order.path), buildRawJson(body), { query: { tenant: order.tenant } }), `${order.path} is changed`, `${order.path} was not changed`)) onChange();
}

/** @param {string} text */
function findTimeError(text) {
  return Number.isNaN(Date.parse(text.trim())) ? "Not a time. Write it like 2026-11-15T18:30:00Z." : null;
}

/** @param {Chain} chain */
export async function promptAndAddOrder(chain) {
  const nodeIds = chain.nodes.map((node) => node.id);
  const values = await promptUser({
    title: "Add an order",
    text: html`<p>The order runs through <b class="mono">${chain.path}</b>.</p>`,
    actionLabel: "Add",
    fields: [
      { name: "id", label: "Id", hint: "Empty: a new number." },
      { name: "value", label: "Value", value: "{}", rows: 5, validate: findJsonError },
      { name: "node", label: "Start node", value: nodeIds[0], choices: nodeIds },
      { name: "delay", label: "Delay", hint: "Such as 90s or 1h." },
      ...(boundTenant.value === null ? [{ name: "tenant", label: "Tenant", hint: "Empty: default." }] : []),
    ],
  });
  if (!values) return;
  const body = buildRawJson({
    path: values.id.trim() ? `${chain.path},${values.id.trim()}` : chain.path,
    value: values.value.trim() ? new RawJson(values.value) : undefined,
    node: values.node === nodeIds[0] ? undefined : values.node,
    delay: values.delay.trim() || undefined,
    tenant: values.tenant?.trim() || undefined,
  });
  try {
    const added = await api.post("/api/v1/orders", body);
    showToast({ text: `${added.orders[0].path} was added` });
    navigate(screenPaths.order(added.orders[0].path, values.tenant?.trim()));
  } catch (error) {
    showError(error, "No order was added");
  }
}
