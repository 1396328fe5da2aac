// User settings, stored in the browser. None of them is secret.

import { effect, signal } from "../vendor/signals.js";

/** A setting that is stored in the browser.
 * @template {string} T
 * @param {string} name
 * @param {readonly T[]} choices the first is the default */
function persistedSetting(name, choices) {
  const key = `pointsman.${name}`;
  const stored = /** @type {T | null} */ (readStorage(key));
  const setting = signal(stored !== null && choices.includes(stored) ? stored : choices[0]);
  effect(() => writeStorage(key, setting.value));
  return setting;
}

/** Storage may be forbidden; the console works without it.
 * @param {string} key */
function readStorage(key) {
  try {
    return localStorage.getItem(key);
  } catch {
    return null;
  }
}

/** @param {string} key @param {string} value */
function writeStorage(key, value) {
  try {
    localStorage.setItem(key, value);
  } catch {
    // The setting then applies to this page only.
  }
}

export const theme = persistedSetting("theme", /** @type {const} */ (["system", "light", "dark"]));
export const zoneSetting = persistedSetting("zone", /** @type {const} */ (["local", "utc"]));

/** Whether the dark theme is active, by setting or by system preference. */
export const isDark = signal(false);

const systemDarkQuery = matchMedia("(prefers-color-scheme: dark)");

function applyTheme() {
  isDark.value = theme.value === "system" ? systemDarkQuery.matches : theme.value === "dark";
  document.documentElement.dataset.theme = isDark.value ? "dark" : "light";
}

systemDarkQuery.addEventListener("change", applyTheme);
effect(applyTheme);

export function toggleTheme() {
  theme.value = isDark.value ? "light" : "dark";
}

export function toggleZone() {
  zoneSetting.value = zoneSetting.value === "utc" ? "local" : "utc";
}
