// The header: breadcrumbs, search, live indicator and session.

import { tokenDetails, signOut } from "../data/session.js";
import { isDark, toggleTheme, toggleTimeZone, timeZoneSetting } from "../data/settings.js";
import { Button } from "../parts/button.js";
import { Icon } from "../parts/icon.js";
import { Link } from "../parts/link.js";
import { html } from "../parts/ui.js";
import { findScreen } from "../screens/registry.js";
import { LiveIndicator } from "./live-indicator.js";
import { togglePane, currentPane } from "./panes.js";
import { currentRoute } from "./router.js";

export function Header() {
  const { screen, params } = currentRoute.value;
  const parentScreen = screen?.parent ? findScreen(screen.parent) : null;
  const name = Object.values(params)[0];
  const details = tokenDetails.value;
  return html`<header class="header">
    <${Button} class="menu-button" kind="quiet" icon="menu" label="Screens" expanded=${currentPane.value === "menu"} onClick=${() => togglePane("menu")} />
    <ol class="breadcrumbs" aria-label="Breadcrumbs">
      ${parentScreen && html`<li><${Link} to=${parentScreen.path}>${parentScreen.title}<//></li>`}
      <li aria-current="page">${name === undefined ? (screen?.title ?? "Not found") : html`<span class="faint">${screen?.title} </span><span class="mono">${name}</span>`}</li>
    </ol>
    <button type="button" class="search-button" aria-label="Search" onClick=${() => togglePane("search")}>
      <${Icon} name="search" size=${14} /><span>Search</span><kbd>/</kbd>
    </button>
    <${LiveIndicator} />
    <${Button} kind="quiet" small onClick=${toggleTimeZone} title="Local time or UTC (u)">${timeZoneSetting.value === "utc" ? "UTC" : "Local"}<//>
    <${Button} kind="quiet" icon=${isDark.value ? "sun" : "moon"} label=${isDark.value ? "Light theme (t)" : "Dark theme (t)"} onClick=${toggleTheme} />
    <span class="token-owner" title=${`${details?.role}${details?.tenant ? `, limited to the tenant ${details.tenant}` : ""}`}>
      <b>${details?.name}</b><span class="faint">${details?.role}${details?.tenant ? ` · ${details.tenant}` : ""}</span>
    </span>
    <${Button} kind="quiet" icon="signOut" label="Sign out" onClick=${() => signOut()} />
  </header>`;
}
