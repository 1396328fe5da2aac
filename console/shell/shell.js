// The frame around every screen: navigation, header, dialogs and toasts.

import { tokenDetails, linkTokenToConfirm, token } from "../data/session.js";
import { toggleTheme, toggleTimeZone } from "../data/settings.js";
import { currentPrompt } from "../parts/prompt.js";
import { lazyComponent } from "../parts/lazy-loading.js";
import { Toasts } from "../parts/toast.js";
import { html, useEffect, useRef } from "../parts/ui.js";
import { ErrorBoundary } from "./error-boundary.js";
import { Header } from "./header.js";
import { useShortcuts } from "./shortcuts.js";
import { Navigation } from "./navigation.js";
import { currentPane, togglePane } from "./panes.js";
import { TokenCheck } from "./token-check.js";
import { currentRoute } from "./router.js";
import { CurrentScreen } from "./current-screen.js";

const DIALOG_CSS = "../styles/dialog.css";
const ShortcutHelp = lazyComponent(() => import("./shortcut-help.js"), "ShortcutHelp", DIALOG_CSS);
const Login = lazyComponent(() => import("./login.js"), "Login", DIALOG_CSS);
const LinkTokenPrompt = lazyComponent(() => import("./link-token.js"), "LinkTokenPrompt");
const CommandPalette = lazyComponent(() => import("./palette.js"), "CommandPalette", DIALOG_CSS);
const PromptDialog = lazyComponent(() => import("../parts/dialog.js"), "PromptDialog", DIALOG_CSS);

export function Shell() {
  if (token.value === "") return html`<${Login} /><${Toasts} />`;
  if (tokenDetails.value === null) return html`<${TokenCheck} key=${token.value} /><${Toasts} />`;
  return html`<${ErrorBoundary} name="The console"><${SignedInShell} /><//>`;
}

function SignedInShell() {
  useShortcuts({
    "ctrl+k": { title: "Commands", run: () => togglePane("commands") },
    "/": { title: "Search", run: () => togglePane("search") },
    "?": { title: "Keyboard shortcuts", run: () => togglePane("help") },
    t: { title: "Light or dark theme", run: toggleTheme },
    u: { title: "Local time or UTC", run: toggleTimeZone },
    Escape: { title: "Close", run: () => { currentPane.value = null; }, hidden: true },
  });
  const { screen, path, params } = currentRoute.value;
  const isFirstRender = useRef(true);
  useEffect(() => {
    currentPane.value = null;
    document.title = [...Object.values(params).slice(0, 1), screen?.title ?? "Not found", "Pointsman"].join(" · ");
    // If the focused link was removed with its screen, the focus moves to the new screen.
    if (!isFirstRender.current && document.activeElement === document.body) focusMain();
    isFirstRender.current = false;
  }, [screen, path]);
  return html`<div class="shell">
    <a class="skip-link" href="#main" onClick=${skipToMain}>Skip to the content</a>
    <${Navigation} />
    <div class="page">
      <${Header} />
      <main id="main" tabindex="-1"><${CurrentScreen} /></main>
    </div>
    ${(currentPane.value === "search" || currentPane.value === "commands") && html`<${CommandPalette} mode=${currentPane.value} />`}
    ${currentPane.value === "help" && html`<${ShortcutHelp} />`}
    ${linkTokenToConfirm.value !== "" && html`<${LinkTokenPrompt} />`}
    ${currentPrompt.value && html`<${PromptDialog} />`}
    <${Toasts} />
  </div>`;
}

/** @param {Event} event */
function skipToMain(event) {
  event.preventDefault();
  focusMain();
}

function focusMain() {
  document.getElementById("main")?.focus();
}
