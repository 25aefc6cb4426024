// Asks for an access token. It is kept for as long as the tab is open, and sent as a header only.

import { html } from "../html.js";
import { keepToken } from "../api.js";
import { Fault } from "../parts.js";

export function Login({ problem, onToken }) {
  const submit = event => {
    event.preventDefault();
    const token = event.currentTarget.elements.token.value.trim();
    if (!token) return;
    keepToken(token);
    onToken();
  };
  return html`<main class="login"><h1>Crawler</h1>
    <p>This master asks for an access token. An administrator makes one with <code>crawler access token add</code>.</p>
    <${Fault} fault=${problem} />
    <form onSubmit=${submit}>
      <label>Access token <input name="token" type="password" autocomplete="off" autofocus required /></label>
      <button class="main">Log in</button>
    </form>
  </main>`;
}
