// Plugins and their versions: rules, kinds of items, and params.

import { html } from "../html.js";
import { useState } from "../vendor/hooks.mjs";
import { get } from "../api.js";
import { bytes, NONE, time } from "../format.js";
import { Figures, Pager, Status, Table } from "../parts.js";
import { usePoll } from "../poll.js";
import { readable } from "../raw.mjs";
import { to } from "../route.js";

const PAGE_SIZE = 100;

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
    <${Pager} tokens=${tokens} next=${load.value?.next_page_token} onTurn=${turned => setPlace({ prefix, tokens: turned })} />`;
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
