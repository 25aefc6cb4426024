// Adds a resource: its name, its plugin, the params that the plugin declares, and further settings as JSON.

import { html } from "../html.js";
import { useState } from "../vendor/hooks.mjs";
import { change, get } from "../api.js";
import { Fault } from "../parts.js";
import { usePoll } from "../poll.js";
import { go } from "../route.js";

// Plugins that are offered. Others can be typed.
const OFFERED = 200;

const EXAMPLE = '{"crawl": {"max_pages": 1000}, "labels": {"team": "shop"}}';

export function Add({ query }) {
  const [name, setName] = useState("");
  const [plugin, setPlugin] = useState(query.plugin ?? "");
  const [params, setParams] = useState({});
  const [fault, setFault] = useState(null);
  const [isBusy, setBusy] = useState(false);
  const offered = usePoll(signal => get("crawler/plugin", { page_size: OFFERED }, signal), []);
  const plugins = offered.value?.plugins ?? [];
  // The plugin whose params are asked for, once its name is typed.
  const [typed, setTyped] = useState(plugin);
  const chosen = usePoll(async signal => typed && get(`crawler/plugin/${encodeURIComponent(typed)}`, {}, signal), [typed]);
  const declared = paramsOf(chosen.value);
  const submit = async event => {
    event.preventDefault();
    const { others, more } = event.currentTarget.elements;
    setBusy(true);
    setFault(null);
    try {
      const given = Object.entries(params).filter(([key, value]) => value && declared.some(one => one.key === key));
      const all = { ...Object.fromEntries(given), ...linesOf(others.value) };
      const body = { ...settingsOf(more.value), name: name.trim(), params: all };
      if (plugin.trim()) body.plugin = plugin.trim();
      await change("POST", "crawler/resource", body);
      go(["resources", body.name]);
    } catch (problem) {
      setFault(problem);
      setBusy(false);
    }
  };
  return html`<h1>Add a resource</h1>
    <form class="add" onSubmit=${submit}>
      <label>Name <input name="name" required maxlength="128" autocomplete="off" value=${name}
        onInput=${event => setName(event.currentTarget.value)} />
        <small>Letters, digits, “-”, “_” and “.”; slashes make namespaces.</small></label>
      <label>Plugin <input name="plugin" list="plugins" autocomplete="off" value=${plugin}
        onInput=${event => setPlugin(event.currentTarget.value)} onChange=${event => setTyped(event.currentTarget.value.trim())} />
        <small>NAME or NAME@VERSION. Without it, the plugin of the resource's name.</small></label>
      <datalist id="plugins">${[...new Set(plugins.flatMap(one => [one.name, `${one.name}@${one.version}`]))].map(
        one => html`<option value=${one}></option>`,
      )}</datalist>
      <${Fault} fault=${offered.fault ?? chosen.fault} />
      ${declared.map(({ key, about, preset, isRequired }) => html`<label key=${key}>${key}
        <input name=${`param-${key}`} required=${isRequired} placeholder=${preset} autocomplete="off" value=${params[key] ?? ""}
          onInput=${event => setParams({ ...params, [key]: event.currentTarget.value })} />
        ${about ? html`<small>${about}</small>` : null}</label>`)}
      <label>${declared.length ? "Further params" : "Params"} <textarea name="others" rows="3"
        placeholder="start=https://books.example/"></textarea><small>NAME=VALUE, one a line.</small></label>
      <label>Settings <textarea name="more" rows="4" placeholder=${EXAMPLE}></textarea>
        <small>JSON with <code>crawl</code>, <code>limits</code>, <code>placement</code> and <code>labels</code>, as the API takes them.</small></label>
      <${Fault} fault=${fault} />
      <button class="main" disabled=${isBusy}>Add</button>
    </form>`;
}

// Params that a plugin declares.
function paramsOf(plugin) {
  if (!plugin?.params_schema) return [];
  try {
    const schema = JSON.parse(plugin.params_schema);
    const required = schema.required ?? [];
    return Object.entries(schema.properties ?? {}).map(([key, one]) => ({
      key,
      about: String(one.description ?? ""),
      preset: String(one.default ?? ""),
      isRequired: required.includes(key),
    }));
  } catch {
    // The fields below take all params.
    return [];
  }
}

function linesOf(text) {
  const given = text.split("\n").filter(line => line.trim());
  return Object.fromEntries(given.map(line => {
    const at = line.indexOf("=");
    if (at < 1) throw new Error(`a param is NAME=VALUE, and not ${line}`);
    return [line.slice(0, at).trim(), line.slice(at + 1).trim()];
  }));
}

function settingsOf(text) {
  if (!text.trim()) return {};
  let settings;
  try {
    settings = JSON.parse(text);
  } catch (error) {
    throw new Error(`the settings are no JSON: ${error.message}`);
  }
  if (settings === null || typeof settings !== "object" || Array.isArray(settings)) {
    throw new Error("the settings are a JSON object, as in the example");
  }
  return settings;
}
