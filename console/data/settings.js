// User settings, stored in the browser. None of them is secret.

import { effect, signal } from "../vendor/signals.js";

/** A setting that is stored in the browser.
 * @template {string} T
 * @param {string} name
 * @param {readonly T[]} choices the first is the default */
function newPersistedSetting(name, choices) {
  const key = `pointsman.${name}`;
  const stored = /** @type {T | null} */ (readLocalStorage(key));
  const setting = signal(stored !== null && choices.includes(stored) ? stored : choices[0]);
  effect(() => writeLocalStorage(key, setting.value));
  return setting;
}

/** Storage may be forbidden; the console works without it.
 * @param {string} key */
function readLocalStorage(key) {
  try {
    return localStorage.getItem(key);
  } catch {
    return null;
  }
}

/** @param {string} key @param {string} value */
function writeLocalStorage(key, value) {
  try {
    localStorage.setItem(key, value);
  } catch {
    // The setting then applies to this page only.
  }
}

export const themeSetting = newPersistedSetting("theme", /** @type {const} */ (["system", "light", "dark"]));
export const timeZoneSetting = newPersistedSetting("zone", /** @type {const} */ (["local", "utc"]));

/** Whether the dark theme is active, by setting or by system preference. */
export const isDark = signal(false);

const systemDarkMediaQuery = matchMedia("(prefers-color-scheme: dark)");

function applyTheme() {
  isDark.value = themeSetting.value === "system" ? systemDarkMediaQuery.matches : themeSetting.value === "dark";
  document.documentElement.dataset.theme = isDark.value ? "dark" : "light";
}

systemDarkMediaQuery.addEventListener("change", applyTheme);
effect(applyTheme);

export function toggleTheme() {
  themeSetting.value = isDark.value ? "light" : "dark";
}

export function toggleTimeZone() {
  timeZoneSetting.value = timeZoneSetting.value === "utc" ? "local" : "utc";
}
