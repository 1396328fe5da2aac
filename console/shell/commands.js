// What the palette offers: the screens, the switches, and what the screen that is shown adds.

import { useEffect, useRef } from "../vendor/preact-hooks.js";
import { signOut } from "../data/session.js";
import { toggleTheme, toggleZone } from "../data/settings.js";
import { visibleScreens } from "./nav.js";
import { togglePane } from "./panes.js";
import { navigate } from "./router.js";

/** @typedef {{title: string, words?: string, run: () => void, kind?: string}} Command */

/** @type {{current: Command[]}[]} */
const screenCommands = [];

/** Adds commands while a screen is shown. @param {Command[]} commands */
export function useCommands(commands) {
  const mine = useRef(commands);
  mine.current = commands;
  useEffect(() => {
    screenCommands.push(mine);
    return () => {
      screenCommands.splice(screenCommands.indexOf(mine), 1);
    };
  }, []);
}

/** @returns {Command[]} */
export function listCommands() {
  return [
    ...screenCommands.flatMap(({ current }) => current.map((command) => ({ kind: "This screen", ...command }))),
    ...visibleScreens().map((screen) => ({ kind: "Go to", title: screen.title, words: screen.words, run: () => navigate(screen.path) })),
    { kind: "Switch", title: "Light or dark theme", words: "theme", run: toggleTheme },
    { kind: "Switch", title: "Local time or UTC", words: "zone", run: toggleZone },
    { kind: "Show", title: "Keyboard shortcuts", words: "help keys", run: () => togglePane("help") },
    { kind: "Show", title: "API reference", words: "docs openapi", run: () => { location.href = "/docs"; } },
    { kind: "Session", title: "Sign out", words: "logout token", run: () => signOut() },
  ];
}
