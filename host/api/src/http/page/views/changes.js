// Changes of the items of a run: which were added, which differ from before and how, and which are gone, a page of them at a time.

import { html } from "../html.js";
import { useState } from "../vendor/hooks.mjs";
import { getText, ofResource } from "../api.js";
import { count, NONE } from "../format.js";
import { Figures, NextRun, Pager, Status, Table } from "../parts.js";
import { usePoll } from "../poll.js";
import { elements, member, readable } from "../raw.mjs";

const PAGE_SIZE = 50;
// Characters of a value that are shown in a row.
const VALUE_MAX = 4 * 1024;

export function Changes({ name, run, wanted }) {
  // `latest` is the present run at the time when the reader chose what is shown.
  const [place, setPlace] = useState({ run: wanted, latest: run, tokens: [""] });
  const { tokens } = place;
  const page_token = tokens.at(-1);
  const query = { run: place.run || "", page_size: PAGE_SIZE, page_token };
  const load = usePoll(signal => page(name, query, signal), [name, place.run, page_token]);
  const { changes = [], totals, next_page_token: next } = load.value ?? {};
  const show = of => setPlace({ run: of, latest: run, tokens: [""] });
  const submit = event => {
    event.preventDefault();
    show(Number(event.currentTarget.elements.run.value));
  };
  return html`<form class="filters" onSubmit=${submit} key=${place.run}>
      <label>Run <input name="run" type="number" min="1" max=${run} required defaultValue=${place.run} data-filter /></label>
      <button>Show</button> <button type="button" onClick=${load.again}>Load again</button>
    </form>
    <${NextRun} what="changes" place=${place} run=${run} show=${show} />
    <${Status} load=${load} isEmpty=${!changes.length} empty="No item was added, changed or removed yet." />
    ${totals ? html`<${Totals} totals=${totals} />` : null}
    <ol class="items" start=${(tokens.length - 1) * PAGE_SIZE + 1}>${changes.map(
      (one, i) => html`<li key=${i}><${Change} ...${one} /></li>`,
    )}</ol>
    <${Pager} tokens=${tokens} next=${next} onTurn=${turned => setPlace({ ...place, tokens: turned })} />`;
}

function Totals({ totals }) {
  return html`<${Figures} figures=${[
      ["Added", count(totals.added)],
      ["Changed", count(totals.changed)],
      ["Removed", count(totals.removed)],
      ["As before", count(totals.unchanged)],
      ["With a key again", count(totals.repeated)],
      ["Without their key", count(totals.lacking_key)],
    ]} />
    <p class="dim">${totals.complete
      ? "The run is complete: all items that it has not seen are told as removed."
      : "The run is not complete, at least not yet: items that it has not seen may be there all the same."}</p>`;
}

function Change({ change, kind, name, fields, old, item }) {
  return html`<p><span class=${`mark ${change}`}>${change}</span> <b>${kind}</b> <code>${name}</code></p>
    ${fields.length ? html`<${Table} caption=${`Fields of ${name} that differ`} heads=${["Field", "Before", "Now"]}>${fields.map(
      field => html`<tr key=${field}><th scope="row">${field}</th><${Value} of=${old} field=${field} /><${Value} of=${item} field=${field} /></tr>`,
    )}<//>` : null}
    ${change === "changed"
      ? html`<details><summary>The item as it is now</summary><${Whole} text=${item} /></details>`
      : html`<${Whole} text=${item ?? old} />`}`;
}

// A value of an item, as it was written. One that was not there is a dash.
function Value({ of, field }) {
  const value = of === null ? null : member(of, field);
  if (value === null) return html`<td>${NONE}</td>`;
  const { text, note } = readable(value, VALUE_MAX);
  return html`<td><code class="value">${text}</code>${note ? html`<br /><small>${note}</small>` : null}</td>`;
}

function Whole({ text }) {
  if (text === null) return null;
  const shown = readable(text);
  return html`${shown.note ? html`<p class="dim">${shown.note}</p>` : null}<pre tabindex="0">${shown.text}</pre>`;
}

// Returns a page of changes, with the items and the old values as the texts that were written; `null` stands for none.
async function page(name, query, signal) {
  const text = await getText(ofResource(name, "changes"), query, signal);
  const { totals, next_page_token } = JSON.parse(text);
  const changes = elements(member(text, "changes")).map(one => {
    const { change, kind, key, fields } = JSON.parse(one);
    return { change, kind, name: key, fields, old: member(one, "old"), item: member(one, "item") };
  });
  return { changes, totals, next_page_token };
}
