// Catches rendering errors, so that the rest of the console keeps working.

import { Button } from "../parts/button.js";
import { EmptyState } from "../parts/states.js";
import { Component, html } from "../parts/ui.js";

/** @extends {Component<{children?: unknown, name?: string}, {error: Error | null}>} */
export class ErrorBoundary extends Component {
  state = { error: /** @type {Error | null} */ (null) };

  /** @param {Error} error */
  static getDerivedStateFromError(error) {
    return { error };
  }

  /** @param {Error} error */
  componentDidCatch(error) {
    console.error(error);
  }

  render() {
    const { error } = this.state;
    if (!error) return /** @type {any} */ (this.props.children);
    return html`<${EmptyState} title=${`${this.props.name ?? "This screen"} crashed`} icon="failure">
      <p>The rest of the console still works. Error: <code>${error.message}</code></p>
      <${Button} onClick=${() => this.setState({ error: null })}>Try again<//><//>`;
  }
}
