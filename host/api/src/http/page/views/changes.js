// Changes of the items of a run: which were added, which differ from before and how, and which are gone, a page of them at a time.

import { html } from "../html.js";
import { useMemo, useState } from "../vendor/hooks.mjs";
import { getText, ofResource } from "../api.js";
import { count, NONE } from "../format.js";
import { emptyPage, Figures, NextRun, Pager, Status, Table } from "../parts.js";
import { usePoll } from "../poll.js";
import { elements, members, readable } from "../raw.mjs";
import { go } from "../route.js";

const PAGE_SIZE = 50;
// Fields of a change that are shown, and characters of a name of one and of a value.
const FIELDS_MAX = 100;
const NAME_MAX = 256;
const VALUE_MAX = 4 * 1024;

// The run is that of the address, so that it can be kept and sent, or the newest one at the time when the view was opened.
export function Changes({ name, newest, run }) {
  // `newest` is the newest run at the time when the reader chose what is shown.
  const [chosen, setChosen] = useState({ run, newest, tokens: [""] });
  const { tokens } = chosen;
  const page_token = tokens.at(-1);
  const query = { run: chosen.run || "", page_size: PAGE_SIZE, page_token };
  const load = usePoll(signal => page(name, query, signal), [name, chosen.run, page_token]);
  const { changes = [], totals, next_page_token: next } = load.value ?? {};
  const choose = of => {
    if (of !== chosen.run) {
      go(["resources", name, "items"], { show: "changes", run: of });
      return;
    }
    // The address stays as it is, so that nothing else would load the run again.
    setChosen({ run: of, newest, tokens: [""] });
    load.again();
  };
  const submit = event => {
    event.preventDefault();
    choose(Number(event.currentTarget.elements.run.value));
  };
  const empty = emptyPage(tokens, next, "No item was added, changed or removed yet.");
  return html`<form class="filters" onSubmit=${submit}>
      <label>Run <input name="run" type="number" min="1" max=${newest} required defaultValue=${chosen.run} data-filter /></label>
      <button>Show</button> <button type="button" onClick=${load.again}>Load again</button>
    </form>
    <${NextRun} what="changes" chosen=${chosen} newest=${newest} onShow=${choose} />
    <${Status} load=${load} isEmpty=${!changes.length} empty=${empty} />
    ${totals ? html`<${Totals} totals=${totals} />` : null}
    <ol class="items" start=${(tokens.length - 1) * PAGE_SIZE + 1}>${changes.map(
      (one, i) => html`<li key=${`${i} ${one.kind} ${one.name}`}><${Change} ...${one} /></li>`,
    )}</ol>
    <${Pager} tokens=${tokens} next=${next} onTurn=${turned => setChosen({ ...chosen, tokens: turned })} />`;
}

function Totals({ totals }) {
  return html`<${Figures} figures=${[
      ["Added", count(totals.added)],
      ["Changed", count(totals.changed)],
      ["Removed", count(totals.removed)],
      ["As before", count(totals.unchanged)],
      ["Repeated keys", count(totals.repeated)],
      ["Items without a key", count(totals.lacking_key)],
    ]} />
    <p class="dim">${totals.complete
      ? "The run is complete: all items that it has not seen are told as removed."
      : "The run is not complete, at least not yet: items that it has not seen may be there all the same."}</p>`;
}

function Change({ fault, change, kind, name, fields, nMore, hasOld, whole }) {
  if (fault) return html`<p class="dim">${fault}</p>`;
  return html`<p><span class=${`mark ${change}`}>${change}</span> <b>${kind}</b> <code>${name}</code></p>
    ${fields.length ? html`<${Table} caption=${`Fields of ${name} that differ`} heads=${["Field", "Before", "Now"]}>${fields.map(
      ({ field, before, now }, i) => html`<tr key=${i}><th scope="row">${field}</th><${Value} shown=${before} /><${Value} shown=${now} /></tr>`,
    )}<//>` : null}
    ${nMore > 0 ? html`<p class="dim">and ${count(nMore)} more</p>` : null}
    ${fields.length && !hasOld
      ? html`<p class="dim">No old value is told: the item had none of these fields before, or the old values were left out because they were too long.</p>`
      : null}
    ${change === "changed" ? html`<${OnDemand} text=${whole} />` : html`<${Whole} text=${whole} />`}`;
}

// A value of an item. One that was not there is a dash.
function Value({ shown }) {
  if (!shown) return html`<td>${NONE}</td>`;
  return html`<td><code class="value">${shown.text}</code>${shown.note ? html`<br /><small>${shown.note}</small>` : null}</td>`;
}

// A whole item that is made readable once it is asked for.
function OnDemand({ text }) {
  const [isOpen, setOpen] = useState(false);
  return html`<details onToggle=${event => setOpen(event.currentTarget.open)}><summary>The item as it is now</summary>
    ${isOpen ? html`<${Whole} text=${text} />` : null}</details>`;
}

function Whole({ text }) {
  const shown = useMemo(() => readable(text), [text]);
  return html`${shown.note ? html`<p class="dim">${shown.note}</p>` : null}<pre tabindex="0">${shown.text}</pre>`;
}

// Returns a page of changes, as they are shown.
async function page(name, query, signal) {
  const answer = members(await getText(ofResource(name, "changes"), query, signal));
  const [totals, next_page_token] = [answer.get("totals"), answer.get("next_page_token")].map(one => JSON.parse(one));
  return { totals, next_page_token, changes: elements(answer.get("changes")).map(shownChange) };
}

// A change that cannot be shown hides no others. Values are the texts that were written.
function shownChange(text) {
  try {
    const told = members(text);
    const [change, kind, name, fields] = ["change", "kind", "key", "fields"].map(one => JSON.parse(told.get(one)));
    const item = told.get("item");
    const old = told.get("old");
    const [before, now] = change === "changed" ? [members(old ?? "{}"), members(item)] : [new Map(), new Map()];
    const shown = value => value !== undefined && readable(value, VALUE_MAX);
    const row = field => ({ field: short(field), before: shown(before.get(field)), now: shown(now.get(field)) });
    return {
      change, kind, name,
      fields: fields.slice(0, FIELDS_MAX).map(row),
      nMore: fields.length - FIELDS_MAX,
      hasOld: before.size > 0,
      whole: item ?? old ?? "",
    };
  } catch (error) {
    return { fault: `This change cannot be shown here: ${error.message}. Read it with the command crawler items --changes.` };
  }
}

const short = field => (field.length > NAME_MAX ? `${field.slice(0, NAME_MAX)}…` : field);
