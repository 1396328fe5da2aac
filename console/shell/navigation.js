// The navigation.

import { Icon } from "../parts/icon.js";
import { Link } from "../parts/link.js";
import { classNames, html } from "../parts/ui.js";
import { screens } from "../screens/registry.js";
import { currentPane } from "./panes.js";
import { currentRoute } from "./router.js";
import { mayOpenScreen } from "./current-screen.js";

/** Screens of the navigation that the token may open. */
export function listVisibleScreens() {
  return screens.filter((screen) => screen.load && screen.icon && mayOpenScreen(screen));
}

export function Navigation() {
  const activeScreen = currentRoute.value.screen;
  return html`<nav class=${classNames("nav", currentPane.value === "menu" && "open")} aria-label="Screens">
    <a class="brand" href="#/overview"><span class="brand-mark" aria-hidden="true"></span><span>Pointsman</span></a>
    <ul>
      ${listVisibleScreens().map((screen) => html`<li key=${screen.name}>
        <${Link} to=${screen.path} current=${activeScreen === screen || activeScreen?.parent === screen.name} onClick=${() => { currentPane.value = null; }}>
          <${Icon} name=${screen.icon} /><span>${screen.title}</span>
        <//>
      </li>`)}
    </ul>
  </nav>`;
}
