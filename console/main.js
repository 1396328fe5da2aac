// Entry point: renders the shell.

import "./data/settings.js";
import { html, render } from "./parts/ui.js";
import { Shell } from "./shell/shell.js";

const root = document.getElementById("console");
if (root) render(html`<${Shell} />`, root);
