// Items of a resource, a page of them at a time, in the order in which they were stored.

import { html } from "../html.js";
import { useState } from "../vendor/hooks.mjs";
import { lines, ofResource } from "../api.js";
import { count, time } from "../format.js";
import { Address, Pager, Status } from "../parts.js";
import { usePoll } from "../poll.js";
import { member, readable } from "../raw.mjs";

const PAGE_SIZE = 50;

export function Items({ name, run }) {
  // `latest` is the present run at the time when the reader chose what is shown.
  const [place, setPlace] = useState({ run, latest: run, kind: "", tokens: [""] });
  const { kind, tokens } = place;
  const after = tokens.at(-1);
  const load = usePoll(signal => page(name, { run: place.run, kind, after }, signal), [name, place.run, kind, after]);
  const items = load.value ?? [];
  const next = items.length === PAGE_SIZE ? items.at(-1).position : "";
  const submit = event => {
    event.preventDefault();
    const { run: ofRun, kind: ofKind } = event.currentTarget.elements;
    setPlace({ run: Number(ofRun.value), latest: run, kind: ofKind.value.trim(), tokens: [""] });
  };
  const turn = () => setPlace({ run, latest: run, kind, tokens: [""] });
  return html`<form class="filters" onSubmit=${submit} key=${place.run}>
      <label>Run <input name="run" type="number" min="1" max=${run} required defaultValue=${place.run} /></label>
      <label>Kind <input name="kind" placeholder="all" defaultValue=${kind} data-filter /></label>
      <button>Show</button> <button type="button" onClick=${load.again}>Load again</button>
    </form>
    ${place.latest && run > place.latest ? html`<p role="status">Run ${run} has begun. These are the items of run ${place.run}.
      <button type="button" onClick=${turn}>Show run ${run}</button></p>` : null}
    <${Status} load=${load} isEmpty=${!items.length} empty="No item here yet." />
    <ol class="items" start=${(tokens.length - 1) * PAGE_SIZE + 1}>${items.map(one => html`<li key=${one.position}>
      <p><b>${one.schema || one.rule}</b> <${Address} url=${one.url} /> <small class="dim">${time(one.fetched_at)}</small></p>
      ${one.shown.note ? html`<p class="dim">${one.shown.note}</p>` : null}<pre tabindex="0">${one.shown.text}</pre></li>`)}</ol>
    <${Pager} tokens=${tokens} next=${next} onTurn=${turned => setPlace({ ...place, tokens: turned })} />
    ${items.length ? html`<p class="dim">${count(items.length)} items on this page.</p>` : null}`;
}

async function page(name, { run, kind, after }, signal) {
  const items = [];
  const query = { envelope: "true", limit: PAGE_SIZE, run: run || "", kind, after };
  for await (const line of lines(ofResource(name, "items"), { query, signal })) {
    const { item: _, ...envelope } = JSON.parse(line);
    items.push({ ...envelope, shown: shownItem(line) });
  }
  return items;
}

// An item that cannot be shown hides no others.
function shownItem(line) {
  try {
    return readable(member(line, "item") ?? "");
  } catch (error) {
    return { text: "", note: `This item cannot be shown here: ${error.message}. Read it with the command crawler items.` };
  }
}
