// Buttons. A button that the token may not use is not rendered.

import { hasRole } from "../data/session.js";
import { Icon } from "./icon.js";
import { classNames, html } from "./ui.js";

/** @param {{children?: import("./ui.js").Children, onClick?: (event: MouseEvent) => void, icon?: import("./icon.js").IconName,
 *   label?: string, kind?: "plain" | "primary" | "danger" | "quiet", small?: boolean, disabled?: boolean, title?: string,
 *   pressed?: boolean, expanded?: boolean, role?: import("../data/session.js").Role, type?: "button" | "submit",
 *   class?: string}} props `label` names a button that shows only an icon; `role` is the role needed to use it */
export function Button({ children, onClick, icon, label, kind = "plain", small = false, disabled = false, title, pressed, expanded, role, type = "button", class: className }) {
  if (role && !hasRole(role)) return null;
  return html`<button type=${type} class=${classNames("button", kind, small && "small", !children && "icon-only", className)}
    onClick=${onClick} disabled=${disabled} title=${title ?? label} aria-label=${label} aria-pressed=${pressed}
    aria-expanded=${expanded}>
    ${icon && html`<${Icon} name=${icon} size=${small ? 14 : 16} />`}${children && html`<span>${children}</span>`}
  </button>`;
}
