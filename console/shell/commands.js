// Commands of the palette: screens, settings, and those of the current screen.

import { useEffect, useRef } from "../vendor/preact-hooks.js";
import { signOut } from "../data/session.js";
import { toggleTheme, toggleTimeZone } from "../data/settings.js";
import { listVisibleScreens } from "./navigation.js";
import { togglePane } from "./panes.js";
import { navigate } from "./router.js";

/** @typedef {{title: string, keywords?: string, run: () => void, kind?: string}} Command */

/** @type {{current: Command[]}[]} */
const registeredScreenCommands = [];

/** Adds commands while a screen is shown. @param {Command[]} commands */
export function useScreenCommands(commands) {
  const registered = useRef(commands);
  registered.current = commands;
  useEffect(() => {
    registeredScreenCommands.push(registered);
    return () => {
      registeredScreenCommands.splice(registeredScreenCommands.indexOf(registered), 1);
    };
  }, []);
}

/** @returns {Command[]} */
export function listCommands() {
  return [
    ...registeredScreenCommands.flatMap(({ current }) => current.map((command) => ({ kind: "This screen", ...command }))),
    ...listVisibleScreens().map((screen) => ({ kind: "Go to", title: screen.title, keywords: screen.keywords, run: () => navigate(screen.path) })),
    { kind: "Switch", title: "Light or dark theme", keywords: "theme", run: toggleTheme },
    { kind: "Switch", title: "Local time or UTC", keywords: "zone", run: toggleTimeZone },
    { kind: "Show", title: "Keyboard shortcuts", keywords: "help keys", run: () => togglePane("help") },
    { kind: "Show", title: "API reference", keywords: "docs openapi", run: () => { location.href = "/docs"; } },
    { kind: "Session", title: "Sign out", keywords: "logout token", run: () => signOut() },
  ];
}
