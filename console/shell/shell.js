// The frame around every screen: navigation, header, and what opens above them.

import { me, offered, token } from "../data/session.js";
import { nextTheme, nextZone } from "../data/settings.js";
import { question } from "../parts/ask.js";
import { later } from "../parts/later.js";
import { Toasts } from "../parts/toast.js";
import { html, useEffect, useRef } from "../parts/ui.js";
import { Boundary } from "./boundary.js";
import { Header } from "./header.js";
import { useShortcuts } from "./keys.js";
import { Nav } from "./nav.js";
import { opened, toggle } from "./panes.js";
import { Recall } from "./recall.js";
import { route } from "./router.js";
import { Stage } from "./stage.js";

const Help = later(() => import("./help.js"), "Help");
const Login = later(() => import("./login.js"), "Login");
const Offer = later(() => import("./offer.js"), "Offer");
const Palette = later(() => import("./palette.js"), "Palette");
const Questions = later(() => import("../parts/dialog.js"), "Questions");

export function Shell() {
  if (token.value === "") return html`<${Login} /><${Toasts} />`;
  if (me.value === null) return html`<${Recall} key=${token.value} /><${Toasts} />`;
  return html`<${Boundary} what="The console"><${Inside} /><//>`;
}

function Inside() {
  useShortcuts({
    "ctrl+k": { what: "Commands", run: () => toggle("commands") },
    "/": { what: "Search", run: () => toggle("search") },
    "?": { what: "Keyboard shortcuts", run: () => toggle("help") },
    t: { what: "Light or dark theme", run: nextTheme },
    u: { what: "Local time or UTC", run: nextZone },
    Escape: { what: "Close", run: () => { opened.value = null; }, hidden: true },
  });
  const { screen, path, params } = route.value;
  const first = useRef(true);
  useEffect(() => {
    opened.value = null;
    document.title = [...Object.values(params).slice(0, 1), screen?.title ?? "Not found", "Pointsman"].join(" · ");
    // What led here may be gone with its screen: keys go on in the new one, and not at the top of the page.
    if (!first.current && document.activeElement === document.body) toMain();
    first.current = false;
  }, [screen, path]);
  return html`<div class="shell">
    <a class="skip" href="#main" onClick=${skip}>Skip to the content</a>
    <${Nav} />
    <div class="page">
      <${Header} />
      <main id="main" tabindex="-1"><${Stage} /></main>
    </div>
    ${(opened.value === "search" || opened.value === "commands") && html`<${Palette} mode=${opened.value} />`}
    ${opened.value === "help" && html`<${Help} />`}
    ${offered.value !== "" && html`<${Offer} />`}
    ${question.value && html`<${Questions} />`}
    <${Toasts} />
  </div>`;
}

/** @param {Event} event */
function skip(event) {
  event.preventDefault();
  toMain();
}

function toMain() {
  document.getElementById("main")?.focus();
}
