// Parts that are loaded when they are first needed, so that the first page stays small.

import { showError } from "./toast.js";
import { html, useEffect, useState } from "./ui.js";

/** A component that is loaded with its first use. Until then nothing stands in its place.
 * @template {Record<string, any>} M
 * @param {() => Promise<M>} load @param {keyof M & string} name */
export function lazyComponent(load, name) {
  /** @type {any} */
  let found = null;
  return function Later(/** @type {Record<string, unknown>} */ props) {
    const [, draw] = useState(0);
    useEffect(() => {
      if (found) return undefined;
      let gone = false;
      load().then((module) => {
        found = module[name];
        if (!gone) draw(1);
      }, () => showError("The server does not respond, or a new version was installed. Reload the console.", "A part of the console could not be loaded"));
      return () => {
        gone = true;
      };
    }, []);
    return found ? html`<${found} ...${props} />` : null;
  };
}
