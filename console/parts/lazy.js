// Components that are loaded on first use, so that the first load stays small.

import { showError } from "./toast.js";
import { html, useEffect, useState } from "./ui.js";

/** A component that is loaded on first use. Until then it renders nothing.
 * @template {Record<string, any>} M
 * @param {() => Promise<M>} load @param {keyof M & string} name */
export function lazyComponent(load, name) {
  /** @type {any} */
  let component = null;
  return function Later(/** @type {Record<string, unknown>} */ props) {
    const [, redraw] = useState(0);
    useEffect(() => {
      if (component) return undefined;
      let isUnmounted = false;
      load().then((module) => {
        component = module[name];
        if (!isUnmounted) redraw(1);
      }, () => showError("The server does not respond, or a new version was installed. Reload the console.", "A part of the console could not be loaded"));
      return () => {
        isUnmounted = true;
      };
    }, []);
    return component ? html`<${component} ...${props} />` : null;
  };
}
