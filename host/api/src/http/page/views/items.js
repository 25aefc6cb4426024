// Items of a resource, a page of them at a time, in the order in which they were stored, and the way to their changes.

import { html } from "../html.js";
import { useState } from "../vendor/hooks.mjs";
import { lines, ofResource } from "../api.js";
import { count, time } from "../format.js";
import { Address, NextRun, Pager, Status } from "../parts.js";
import { usePoll } from "../poll.js";
import { member, readable } from "../raw.mjs";
import { to } from "../route.js";
import { Changes } from "./changes.js";

const PAGE_SIZE = 50;

// Items of a resource, or their changes from run to run. The address says which, and of which run changes are shown first.
export function Results({ name, run, query }) {
  const isOfChanges = query.show === "changes";
  const wanted = Number(query.run) || run;
  const side = (text, show) => html`<a href=${to(["resources", name, "items"], { show })}
    aria-current=${(show === "changes") === isOfChanges ? "true" : undefined}>${text}</a>`;
  return html`<nav class="sides" aria-label="Items or changes">${side("Items", "")}${side("Changes", "changes")}</nav>
    ${isOfChanges
      ? html`<${Changes} key=${query.run} name=${name} run=${run} wanted=${wanted} />`
      : html`<${Items} name=${name} run=${run} />`}`;
}

function Items({ name, run }) {
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
  const show = of => setPlace({ run: of, latest: run, kind, tokens: [""] });
  return html`<form class="filters" onSubmit=${submit} key=${place.run}>
      <label>Run <input name="run" type="number" min="1" max=${run} required defaultValue=${place.run} /></label>
      <label>Kind <input name="kind" placeholder="all" defaultValue=${kind} data-filter /></label>
      <button>Show</button> <button type="button" onClick=${load.again}>Load again</button>
    </form>
    <${NextRun} what="items" place=${place} run=${run} show=${show} />
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
