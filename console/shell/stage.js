// The screen itself: loaded when it is first gone to, and kept from taking the rest along when it fails.

import { Button } from "../parts/button.js";
import { Empty, Loading } from "../parts/states.js";
import { html, useEffect, useState } from "../parts/ui.js";
import { bound, may } from "../data/session.js";
import { Boundary } from "./boundary.js";
import { route, go } from "./router.js";

/** @typedef {import("../screens/registry.js").Screen} Screen */
/** @typedef {import("../screens/registry.js").View} View */

export function Stage() {
  const { screen, params, query, path } = route.value;
  if (!screen) {
    return html`<${Empty} title="Page not found" icon="search"><p>No screen has the address <code>${path}</code>.</p>
      <${Button} onClick=${() => go("/overview")}>Go to the overview<//><//>`;
  }
  if (!allowed(screen)) {
    const why = screen.role && !may(screen.role) ? `This screen needs the role ${screen.role}.` : "This screen needs a token that is not limited to one tenant.";
    return html`<${Empty} title="Not allowed with this token" icon="block"><p>${why}</p><//>`;
  }
  return html`<${Boundary} key=${screen.name}><${Loaded} screen=${screen} params=${params} query=${query} /><//>`;
}

/** Whether the one who is signed in can see a screen at all. @param {Screen} screen */
export function allowed(screen) {
  return may(screen.role ?? "viewer") && !(screen.unbound && bound.value !== null);
}

const AGAIN_MS = 3000;

const ANEW_MS = 30_000;

/** Browsers may remember that a file could not be loaded, and not ask for it again. So the page begins anew as soon as the
 * server answers; but not over and over, should the file not be there at all.
 * @param {Screen} screen */
async function beginAnew(screen) {
  const { ok } = await fetch("/livez").catch(() => ({ ok: false }));
  const now = Date.now();
  if (!ok || route.value.screen !== screen || now - (history.state?.anew ?? 0) < ANEW_MS) return;
  history.replaceState({ ...history.state, anew: now }, "");
  location.reload();
}

/** @type {Map<string, View>} */
const views = new Map();

/** @param {{screen: Screen, params: Record<string, string>, query: Record<string, string>}} props */
function Loaded({ screen, params, query }) {
  const [state, setState] = useState(/** @type {{view: View | null, failed: boolean}} */ ({ view: views.get(screen.name) ?? null, failed: false }));
  const load = () => {
    Promise.all([screen.load?.(), ...(screen.styles ?? []).map(style)]).then(([module]) => {
      if (!module) return;
      views.set(screen.name, module.default);
      setState({ view: module.default, failed: false });
    }, () => {
      if (state.failed) beginAnew(screen);
      setState({ view: null, failed: true });
    });
  };
  useEffect(() => {
    if (!state.view) load();
  }, [screen]);
  useEffect(() => {
    if (!state.failed) return undefined;
    const timer = setTimeout(load, AGAIN_MS);
    return () => clearTimeout(timer);
  }, [state]);
  if (state.failed) {
    return html`<${Empty} title="This screen could not be loaded" icon="failure">
      <p>The server does not respond (the console keeps trying), or a new version was installed.</p>
      <${Button} onClick=${() => location.reload()}>Reload the console<//><//>`;
  }
  const View = state.view;
  return View ? html`<${View} params=${params} query=${query} />` : html`<${Loading} />`;
}

/** Loads a style sheet, once.
 * @param {string} name */
function style(name) {
  const href = new URL(`../screens/${name}`, import.meta.url).href;
  if (document.querySelector(`link[href="${CSS.escape(href)}"]`)) return Promise.resolve();
  return new Promise((resolve, reject) => {
    const link = document.createElement("link");
    link.rel = "stylesheet";
    link.href = href;
    link.onload = () => resolve(undefined);
    link.onerror = () => {
      link.remove();
      reject(new Error(name));
    };
    document.head.append(link);
  });
}
