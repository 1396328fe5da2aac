// The line above the screen: where we are, search, and whether what is shown is current.

import { me, signOut } from "../data/session.js";
import { dark, nextTheme, nextZone, zone } from "../data/settings.js";
import { Button } from "../parts/button.js";
import { Icon } from "../parts/icon.js";
import { Link } from "../parts/link.js";
import { html } from "../parts/ui.js";
import { screenOf } from "../screens/registry.js";
import { Live } from "./live.js";
import { toggle, opened } from "./panes.js";
import { route } from "./router.js";

export function Header() {
  const { screen, params } = route.value;
  const above = screen?.under ? screenOf(screen.under) : null;
  const name = Object.values(params)[0];
  const who = me.value;
  return html`<header class="header">
    <${Button} class="menu-button" kind="quiet" icon="menu" label="Screens" expanded=${opened.value === "menu"} onClick=${() => toggle("menu")} />
    <ol class="crumbs" aria-label="Breadcrumbs">
      ${above && html`<li><${Link} to=${above.path}>${above.title}<//></li>`}
      <li aria-current="page">${name === undefined ? (screen?.title ?? "Not found") : html`<span class="faint">${screen?.title} </span><span class="mono">${name}</span>`}</li>
    </ol>
    <button type="button" class="search-button" aria-label="Search" onClick=${() => toggle("search")}>
      <${Icon} name="search" size=${14} /><span>Search</span><kbd>/</kbd>
    </button>
    <${Live} />
    <${Button} kind="quiet" small onClick=${nextZone} title="Local time or UTC (u)">${zone.value === "utc" ? "UTC" : "Local"}<//>
    <${Button} kind="quiet" icon=${dark.value ? "sun" : "moon"} label=${dark.value ? "Light theme (t)" : "Dark theme (t)"} onClick=${nextTheme} />
    <span class="who" title=${`${who?.role}${who?.tenant ? `, limited to the tenant ${who.tenant}` : ""}`}>
      <b>${who?.name}</b><span class="faint">${who?.role}${who?.tenant ? ` · ${who.tenant}` : ""}</span>
    </span>
    <${Button} kind="quiet" icon="out" label="Sign out" onClick=${() => signOut()} />
  </header>`;
}
