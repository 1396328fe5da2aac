// Loads and renders the current screen.

import { Button } from "../parts/button.js";
import { loadStyleSheet } from "../parts/lazy-loading.js";
import { EmptyState, LoadingState } from "../parts/states.js";
import { html, useEffect, useState } from "../parts/ui.js";
import { boundTenant, hasRole } from "../data/session.js";
import { ErrorBoundary } from "./error-boundary.js";
import { currentRoute, navigate } from "./router.js";

/** @typedef {import("../screens/registry.js").Screen} Screen */
/** @typedef {import("../screens/registry.js").ScreenView} ScreenView */

export function CurrentScreen() {
  const { screen, params, query, path } = currentRoute.value;
  if (!screen) {
    return html`<${EmptyState} title="Page not found" icon="search"><p>No screen has the address <code>${path}</code>.</p>
      <${Button} onClick=${() => navigate("/overview")}>Go to the overview<//><//>`;
  }
  if (!mayOpenScreen(screen)) {
    const reason = screen.role && !hasRole(screen.role) ? `This screen needs the role ${screen.role}.` : "This screen needs a token that is not limited to one tenant.";
    return html`<${EmptyState} title="Not allowed with this token" icon="block"><p>${reason}</p><//>`;
  }
  return html`<${ErrorBoundary} key=${screen.name}><${ScreenLoader} screen=${screen} params=${params} query=${query} /><//>`;
}

/** Whether the token may open a screen. @param {Screen} screen */
export function mayOpenScreen(screen) {
  return hasRole(screen.role ?? "viewer") && !(screen.needsAllTenants && boundTenant.value !== null);
}

const LOAD_RETRY_MS = 3000;

const MIN_RELOAD_INTERVAL_MS = 30_000;

/** Reloads the page once the server responds: browsers may cache that a module failed to load. Not repeated at once,
 * since the file may not exist.
 * @param {Screen} screen */
async function reloadPageIfServerResponds(screen) {
  const { ok } = await fetch("/livez").catch(() => ({ ok: false }));
  const now = Date.now();
  if (!ok || currentRoute.value.screen !== screen || now - (history.state?.reloadedAt ?? 0) < MIN_RELOAD_INTERVAL_MS) return;
  history.replaceState({ ...history.state, reloadedAt: now }, "");
  location.reload();
}

/** @type {Map<string, ScreenView>} */
const loadedViews = new Map();

/** @param {{screen: Screen, params: Record<string, string>, query: Record<string, string>}} props */
function ScreenLoader({ screen, params, query }) {
  const [state, setState] = useState(/** @type {{view: ScreenView | null, failed: boolean}} */ ({ view: loadedViews.get(screen.name) ?? null, failed: false }));
  const load = () => {
    Promise.all([screen.load?.(), ...(screen.styles ?? []).map(loadStyleSheet)]).then(([module]) => {
      if (!module) return;
      loadedViews.set(screen.name, module.default);
      setState({ view: module.default, failed: false });
    }, () => {
      if (state.failed) reloadPageIfServerResponds(screen);
      setState({ view: null, failed: true });
    });
  };
  useEffect(() => {
    if (!state.view) load();
  }, [screen]);
  useEffect(() => {
    if (!state.failed) return undefined;
    const timer = setTimeout(load, LOAD_RETRY_MS);
    return () => clearTimeout(timer);
  }, [state]);
  if (state.failed) {
    return html`<${EmptyState} title="This screen could not be loaded" icon="failure">
      <p>The server does not respond (the console keeps trying), or a new version was installed.</p>
      <${Button} onClick=${() => location.reload()}>Reload the console<//><//>`;
  }
  const View = state.view;
  return View ? html`<${View} params=${params} query=${query} />` : html`<${LoadingState} />`;
}
