// The way to the screens.

import { Icon } from "../parts/icon.js";
import { Link } from "../parts/link.js";
import { classes, html } from "../parts/ui.js";
import { screens } from "../screens/registry.js";
import { opened } from "./panes.js";
import { route } from "./router.js";
import { allowed } from "./stage.js";

/** The screens that one can go to without knowing anything else. */
export function offered() {
  return screens.filter((screen) => screen.load && screen.icon && allowed(screen));
}

export function Nav() {
  const here = route.value.screen;
  return html`<nav class=${classes("nav", opened.value === "menu" && "open")} aria-label="Screens">
    <a class="brand" href="#/overview"><span class="brand-mark" aria-hidden="true"></span><span>Pointsman</span></a>
    <ul>
      ${offered().map((screen) => html`<li key=${screen.name}>
        <${Link} to=${screen.path} current=${here === screen || here?.under === screen.name} onClick=${() => { opened.value = null; }}>
          <${Icon} name=${screen.icon} /><span>${screen.title}</span>
        <//>
      </li>`)}
    </ul>
  </nav>`;
}
