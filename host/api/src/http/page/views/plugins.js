// Plugins and their versions: rules, kinds of items, params, who runs them, and pushes that were refused.

import { html } from "../html.js";
import { useState } from "../vendor/hooks.mjs";
import { get } from "../api.js";
import { bytes, NONE, time } from "../format.js";
import { Figures, Pager, Status, Table } from "../parts.js";
import { usePoll } from "../poll.js";
import { readable } from "../raw.mjs";
import { to } from "../route.js";
import { Runners } from "./limits.js";

const PAGE_SIZE = 100;
// Entries of the audit log that are looked at, and refused pushes that are shown.
const AUDIT_MAX = 1_000;
const REFUSED_MAX = 20;

const HEADS = ["Plugin", "Version", ["Kinds of items", "wide"], ["Size", "wide"], "Pushed", ["Crawl", "acts"]];

export const Plugins = ({ name }) => (name ? html`<${Plugin} name=${name} />` : html`<${List} />`);

function List() {
  const [{ prefix, tokens }, setPlace] = useState({ prefix: "", tokens: [""] });
  const page_token = tokens.at(-1);
  const load = usePoll(
    signal => get("crawler/plugin", { prefix, page_size: PAGE_SIZE, page_token }, signal),
    [prefix, page_token],
  );
  const plugins = load.value?.plugins ?? [];
  const submit = event => {
    event.preventDefault();
    setPlace({ prefix: event.currentTarget.elements.prefix.value.trim(), tokens: [""] });
  };
  return html`<h1>Plugins</h1>
    <form class="filters" role="search" onSubmit=${submit}>
      <label>Name begins with <input name="prefix" type="search" data-filter /></label>
      <button>Filter</button> <button type="button" onClick=${load.again}>Load again</button>
    </form>
    <${Status} load=${load} isEmpty=${!plugins.length}
      empty=${html`None here. <code>crawler plugin push FILE</code> pushes one.`} />
    ${plugins.length ? html`<${Table} caption="Plugins" heads=${HEADS}>${plugins.map(plugin => {
      const full = `${plugin.name}@${plugin.version}`;
      return html`<tr key=${full}><th scope="row"><a href=${to(["plugins", full])}>${plugin.name}</a></th><td>${plugin.version}</td>
        <td class="wide">${plugin.schemas.map(schema => schema.name).join(", ")}</td>
        <td class="wide">${bytes(Number(plugin.size))}</td><td>${time(plugin.pushed_at)}</td>
        <td class="acts"><a class="button" aria-label=${`Crawl with it: ${full}`}
          href=${to(["add"], { plugin: full })}>Crawl with it</a></td></tr>`;
    })}<//>` : null}
    <${Pager} tokens=${tokens} next=${load.value?.next_page_token} onTurn=${turned => setPlace({ prefix, tokens: turned })} />
    <${RefusedPushes} />`;
}

// The audit log has them, for readers with the role of an administrator. Others are shown none.
function RefusedPushes() {
  const load = usePoll(signal => get("crawler/access/audit", { limit: AUDIT_MAX }, signal), []);
  const pushes = (load.value?.entries ?? []).filter(({ method }) => method === "PushPlugin");
  const refused = pushes.filter(({ result }) => result !== "OK").slice(-REFUSED_MAX).reverse();
  if (!refused.length) return null;
  return html`<h2>Pushes that were refused</h2>
    <${Table} caption="Refused pushes" heads=${["When", "Who", ["From", "wide"], "Why"]}>${refused.map(
      entry => html`<tr><td>${time(entry.at)}</td><td>${entry.subject}</td><td class="wide">${entry.address}</td>
        <td>${entry.detail || entry.result}${Number(entry.times) > 1 ? ` (${entry.times} times)` : ""}</td></tr>`,
    )}<//>`;
}

function Plugin({ name }) {
  const load = usePoll(signal => get(`crawler/plugin/${encodeURIComponent(name)}`, {}, signal), [name]);
  const plugin = load.value;
  if (!plugin) return html`<h1>${name}</h1><${Status} load=${load} />`;
  const full = `${plugin.name}@${plugin.version}`;
  return html`<h1>${full}</h1>
    <p class="buttons"><a class="button main" href=${to(["add"], { plugin: full })}>Crawl with it</a>
      <a class="button" href=${to(["resources"], { plugin: full })}>Resources that run it</a></p>
    <${Figures} figures=${[["Rules", plugin.rules.join(", ") || NONE], ["Interface", plugin.interface], ["Size", bytes(Number(plugin.size))],
      ["Pushed", time(plugin.pushed_at)], ["Digest", html`<code>${plugin.digest}</code>`]]} />
    <${Runners} plugin=${full} />
    <h2>Params</h2><${Schema} text=${plugin.params_schema} empty="It declares none, and takes all." />
    ${plugin.schemas.map(schema => html`<h2>Items of kind ${schema.name}</h2><${Schema} text=${schema.json_schema} />`)}`;
}

function Schema({ text, empty = "" }) {
  if (!text) return html`<p class="blank">${empty}</p>`;
  let shown = { text, note: "" };
  try {
    JSON.parse(text);
    shown = readable(text);
  } catch {
    // It is shown as the plugin has written it.
  }
  return html`${shown.note ? html`<p class="dim">${shown.note}</p>` : null}<pre tabindex="0">${shown.text}</pre>`;
}
