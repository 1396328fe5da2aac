// What a person has chosen, kept in the browser. Nothing secret is among it.

import { effect, signal } from "../vendor/signals.js";

/** A setting that outlives the page.
 * @template {string} T
 * @param {string} name
 * @param {readonly T[]} choices the first is what holds if nothing was chosen */
function kept(name, choices) {
  const key = `pointsman.${name}`;
  const found = /** @type {T | null} */ (read(key));
  const setting = signal(found !== null && choices.includes(found) ? found : choices[0]);
  effect(() => write(key, setting.value));
  return setting;
}

/** Storage may be forbidden; the console works without.
 * @param {string} key */
function read(key) {
  try {
    return localStorage.getItem(key);
  } catch {
    return null;
  }
}

/** @param {string} key @param {string} value */
function write(key, value) {
  try {
    localStorage.setItem(key, value);
  } catch {
    // It holds for this page, then.
  }
}

export const theme = kept("theme", /** @type {const} */ (["system", "light", "dark"]));
export const zone = kept("zone", /** @type {const} */ (["local", "utc"]));

/** Whether colours are dark now, whoever decided it. */
export const dark = signal(false);

const system = matchMedia("(prefers-color-scheme: dark)");

function paint() {
  dark.value = theme.value === "system" ? system.matches : theme.value === "dark";
  document.documentElement.dataset.theme = dark.value ? "dark" : "light";
}

system.addEventListener("change", paint);
effect(paint);

export function nextTheme() {
  theme.value = dark.value ? "light" : "dark";
}

export function nextZone() {
  zone.value = zone.value === "utc" ? "local" : "utc";
}
