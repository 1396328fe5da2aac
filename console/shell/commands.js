// What the palette offers: the screens, the switches, and what the screen that is shown adds.

import { useEffect, useRef } from "../vendor/preact-hooks.js";
import { signOut } from "../data/session.js";
import { nextTheme, nextZone } from "../data/settings.js";
import { offered } from "./nav.js";
import { toggle } from "./panes.js";
import { go } from "./router.js";

/** @typedef {{title: string, words?: string, run: () => void, kind?: string}} Command */

/** @type {{current: Command[]}[]} */
const added = [];

/** Adds commands while a screen is shown. @param {Command[]} commands */
export function useCommands(commands) {
  const mine = useRef(commands);
  mine.current = commands;
  useEffect(() => {
    added.push(mine);
    return () => {
      added.splice(added.indexOf(mine), 1);
    };
  }, []);
}

/** @returns {Command[]} */
export function commands() {
  return [
    ...added.flatMap(({ current }) => current.map((command) => ({ kind: "This screen", ...command }))),
    ...offered().map((screen) => ({ kind: "Go to", title: screen.title, words: screen.words, run: () => go(screen.path) })),
    { kind: "Switch", title: "Light or dark theme", words: "theme", run: nextTheme },
    { kind: "Switch", title: "Local time or UTC", words: "zone", run: nextZone },
    { kind: "Show", title: "Keyboard shortcuts", words: "help keys", run: () => toggle("help") },
    { kind: "Show", title: "API reference", words: "docs openapi", run: () => { location.href = "/docs"; } },
    { kind: "Session", title: "Sign out", words: "logout token", run: () => signOut() },
  ];
}
