// Settings of a resource that are not the defaults, and a form that changes them: what is different is shown with the time from which
// it holds, before it is changed.

import { html } from "../html.js";
import { useState } from "../vendor/hooks.mjs";
import { changeSettings } from "../actions.js";
import { get } from "../api.js";
import { count, NONE, time } from "../format.js";
import { Fault, Figures, Status, Table } from "../parts.js";
import { usePoll } from "../poll.js";
import { appliesWhen, changed, changesOf, keyOf, needsRestart, textIn, valueIn } from "../settings.mjs";

const PARTS = [["", "Resource"], ["crawl", "Crawl"], ["limits", "Limits of a call"], ["placement", "Placement"]];

export function Settings({ resource, again }) {
  const { spec, generation, added_at, plugin_digest } = resource;
  const load = usePoll(signal => get("page/settings.json", {}, signal), []);
  // The resource as it was when its reader began to change it.
  const [seen, setSeen] = useState(null);
  const close = () => setSeen(null);
  const done = () => {
    close();
    again();
  };
  return html`<${Figures} figures=${[["Plugin", spec.plugin], ["Digest", html`<code>${plugin_digest || NONE}</code>`],
      ["Added", time(added_at)], ["Changes", count(generation)], ["Id", spec.id]]} />
    <h2>Settings</h2>
    <${Status} load=${load} />
    ${load.value && !seen ? html`<${Present} spec=${spec} rows=${load.value} onChange=${() => setSeen(resource)} />` : null}
    ${load.value && seen ? html`<${Form} resource=${seen} rows=${load.value} onDone=${done} onLeave=${close} />` : null}`;
}

// Long values, and those of a later version of the master, are shown as JSON.
const shown = (spec, row) => textIn(spec, row) ?? JSON.stringify(valueIn(spec, row), null, 2);

function Present({ spec, rows, onChange }) {
  const set = rows.filter(row => valueIn(spec, row) !== undefined);
  return html`<${Table} caption="Settings that are not the defaults" heads=${["Setting", "Value", ["Meaning", "wide"], ["A change holds", "wide"]]}>${set.map(
      row => html`<tr key=${keyOf(row)}><th scope="row">${row.name}</th><td class="value">${shown(spec, row)}</td>
        <td class="wide">${row.about}</td><td class="wide">${row.applies}</td></tr>`,
    )}<//>
    <p class="buttons"><button type="button" class="main" onClick=${onChange}>Change settings</button></p>
    <p class="dim">What is not named here has its default.</p>`;
}

function Form({ resource, rows, onDone, onLeave }) {
  const { spec } = resource;
  const [texts, setTexts] = useState(() => Object.fromEntries(
    rows.filter(row => valueIn(spec, row) !== undefined).map(row => [keyOf(row), textIn(spec, row)]),
  ));
  const [fault, setFault] = useState(null);
  const [changes, setChanges] = useState(null);
  const shownRows = rows.filter(row => keyOf(row) in texts);
  const others = rows.filter(row => !(keyOf(row) in texts));
  const set = (key, text) => setTexts(before => ({ ...before, [key]: text }));
  const review = event => {
    event.preventDefault();
    try {
      const found = changesOf(spec, rows, texts);
      if (!found.length) throw new Error("nothing is different from what is set");
      setFault(null);
      setChanges(found);
    } catch (error) {
      setFault(error);
    }
  };
  if (changes) return html`<${Review} resource=${resource} changes=${changes} onDone=${onDone} onBack=${() => setChanges(null)} />`;
  return html`<form class="add" onSubmit=${review} aria-label="Settings">
    ${shownRows.map(row => html`<${Field} key=${keyOf(row)} row=${row} text=${texts[keyOf(row)]} onInput=${text => set(keyOf(row), text)} />`)}
    <label>Add a setting
      <select name="setting" value="" onChange=${event => event.currentTarget.value && set(event.currentTarget.value, "")}>
        <option value="">…</option>
        ${PARTS.map(([part, title]) => html`<optgroup label=${title}>${others.filter(row => row.part === part).map(
          row => html`<option key=${keyOf(row)} value=${keyOf(row)}>${row.name}</option>`,
        )}</optgroup>`)}
      </select></label>
    <${Fault} fault=${fault} />
    <p class="buttons"><button class="main">Review</button> <button type="button" onClick=${onLeave}>Cancel</button></p>
  </form>`;
}

function Field({ row, text, onInput }) {
  const hint = html`<small>${row.about}. Default: ${row.default}.</small>`;
  if (text === null) {
    return html`<p>${row.name}<br /><small>Its value cannot be written in a form. <code>crawler resource update</code> changes it.</small></p>`;
  }
  const field = { name: keyOf(row), value: text, autocomplete: "off", onInput: event => onInput(event.currentTarget.value) };
  if (row.form === "texts" || row.form === "pairs") {
    const form = row.form === "pairs" ? "NAME=VALUE, one a line" : "One a line";
    return html`<label>${row.name} <textarea ...${field} rows=${Math.min(8, text.split("\n").length + 1)} placeholder=${form}></textarea>${hint}</label>`;
  }
  return html`<label>${row.name} <input ...${field} placeholder=${row.default} />${hint}</label>`;
}

function Review({ resource, changes, onDone, onBack }) {
  const [isBusy, setBusy] = useState(false);
  const make = isRestart => async () => {
    setBusy(true);
    const isDone = await changeSettings(resource, () => changed(resource.spec, changes), isRestart);
    setBusy(false);
    if (isDone) onDone();
  };
  const onlyByRestart = needsRestart(changes);
  return html`<${Table} caption="Changes" heads=${["Setting", "Now", "Then", "Holds"]}>${changes.map(
      one => html`<tr key=${keyOf(one.row)}><th scope="row">${one.row.name}</th><td class="value">${one.before || "default"}</td>
        <td class="value">${one.after || "default"}</td><td>${appliesWhen(one)}</td></tr>`,
    )}<//>
    <p class="dim">${onlyByRestart ? "Only a new run takes all of this; the present run ends." : "A restart ends the present run, and the new one takes all of this."}</p>
    <p class="buttons">
      ${onlyByRestart ? null : html`<button type="button" class="main" disabled=${isBusy} onClick=${make(false)}>Change</button>`}
      <button type="button" disabled=${isBusy} onClick=${make(true)}>Change and restart</button>
      <button type="button" disabled=${isBusy} onClick=${onBack}>Back</button>
    </p>`;
}
