// Loads components and style sheets on first use, so that the first load stays small.

import { showError } from "./toast.js";
import { html, useEffect, useState } from "./ui.js";

/** A component that is loaded on first use, with its style sheets. Until then it renders nothing.
 * @template {Record<string, any>} M
 * @param {() => Promise<M>} load @param {keyof M & string} name @param {...string} styles */
export function lazyComponent(load, name, ...styles) {
  /** @type {any} */
  let component = null;
  return function LazyComponent(/** @type {Record<string, unknown>} */ props) {
    const [, rerender] = useState(0);
    useEffect(() => {
      if (component) return undefined;
      let isUnmounted = false;
      Promise.all([load(), ...styles.map(loadStyleSheet)]).then(([module]) => {
        component = module[name];
        if (!isUnmounted) rerender(1);
      }, () => showError("The server does not respond, or a new version was installed. Reload the console.", "A part of the console could not be loaded"));
      return () => {
        isUnmounted = true;
      };
    }, []);
    return component ? html`<${component} ...${props} />` : null;
  };
}

/** Loads a style sheet once.
 * @param {string} name relative to the folder of the screens */
export function loadStyleSheet(name) {
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
