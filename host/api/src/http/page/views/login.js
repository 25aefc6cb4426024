// Asks for an access token. It is kept for as long as the tab is open, and sent as a header only.

import { html } from "../html.js";
import { useState } from "../vendor/hooks.mjs";
import { Fault } from "../parts.js";

// Characters that a header can carry.
const VISIBLE = /^[\x21-\x7e]+$/;

const UNFIT = {
  message: "this is no access token: it has characters that no token has",
  hint: "copy the token again, from its first to its last character",
};

export function Login({ problem, onToken }) {
  const [isUnfit, setUnfit] = useState(false);
  const [isBusy, setBusy] = useState(false);
  const submit = async event => {
    event.preventDefault();
    const token = event.currentTarget.elements.token.value.trim();
    setUnfit(!VISIBLE.test(token));
    if (!VISIBLE.test(token)) return;
    setBusy(true);
    await onToken(token);
    setBusy(false);
  };
  return html`<main class="login"><h1>Crawler</h1>
    <p>This master asks for an access token. An administrator makes one with <code>crawler access token add</code>.</p>
    <${Fault} fault=${isUnfit ? UNFIT : problem} />
    <form onSubmit=${submit}>
      <label>Access token <input name="token" type="password" autocomplete="off" autofocus required /></label>
      <button class="main" disabled=${isBusy}>Log in</button>
    </form>
  </main>`;
}
