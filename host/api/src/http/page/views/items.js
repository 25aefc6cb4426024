// Items of a resource, a page of them at a time, in the order in which they were stored; how their fields are filled, and the way to their
// changes.

import { html } from "../html.js";
import { useState } from "../vendor/hooks.mjs";
import { lines, ofResource } from "../api.js";
import { count, time } from "../format.js";
import { Address, emptyPage, NextRun, Pager, Status } from "../parts.js";
import { usePoll } from "../poll.js";
import { member, readable } from "../raw.mjs";
import { to } from "../route.js";
import { Changes } from "./changes.js";
import { Fields } from "./fields.js";

const PAGE_SIZE = 50;

// Items of a resource, their fields, or their changes from run to run. The address says which, and of which run changes are shown.
export function Results({ name, run, plugin, query: { show = "", run: chosen } }) {
  const side = (text, one) => html`<a href=${to(["resources", name, "items"], { show: one })}
    aria-current=${one === show ? "true" : undefined}>${text}</a>`;
  return html`<nav class="sides" aria-label="Items, fields or changes">${side("Items", "")}${side("Fields", "fields")}${side("Changes", "changes")}</nav>
    <${Side} key=${show} show=${show} name=${name} run=${run} plugin=${plugin} chosen=${chosen} />`;
}

function Side({ show, name, run, plugin, chosen }) {
  switch (show) {
    case "fields": return html`<${Fields} name=${name} run=${run} plugin=${plugin} />`;
    case "changes": return html`<${Changes} key=${chosen} name=${name} newest=${run} run=${numberOf(chosen) ?? run} />`;
    default: return html`<${Items} name=${name} newest=${run} />`;
  }
}

// Number of a run in an address, or `null` for what is none.
const numberOf = text => (/^[1-9][0-9]{0,8}$/.test(text) ? Number(text) : null);

function Items({ name, newest }) {
  // `newest` is the newest run at the time when the reader chose what is shown.
  const [chosen, setChosen] = useState({ run: newest, newest, kind: "", tokens: [""] });
  const { run, kind, tokens } = chosen;
  const after = tokens.at(-1);
  const load = usePoll(signal => page(name, { run, kind, after }, signal), [name, run, kind, after]);
  const items = load.value ?? [];
  const next = items.length === PAGE_SIZE ? items.at(-1).position : "";
  const choose = (ofRun, ofKind) => {
    setChosen({ run: ofRun, newest, kind: ofKind, tokens: [""] });
    // Nothing else would load again what is shown already.
    if (ofRun === run && ofKind === kind) load.again();
  };
  const submit = event => {
    event.preventDefault();
    const { elements } = event.currentTarget;
    choose(Number(elements.run.value), elements.kind.value.trim());
  };
  return html`<form class="filters" onSubmit=${submit} key=${run}>
      <label>Run <input name="run" type="number" min="1" max=${newest} required defaultValue=${run} /></label>
      <label>Kind <input name="kind" placeholder="all" defaultValue=${kind} data-filter /></label>
      <button>Show</button> <button type="button" onClick=${load.again}>Load again</button>
    </form>
    <${NextRun} what="items" chosen=${chosen} newest=${newest} onShow=${begun => choose(begun, kind)} />
    <${Status} load=${load} isEmpty=${!items.length} empty=${emptyPage(tokens, next, "No item here yet.")} />
    <ol class="items" start=${(tokens.length - 1) * PAGE_SIZE + 1}>${items.map(one => html`<li key=${one.position}>
      <p><b>${one.schema || one.rule}</b> <${Address} url=${one.url} /> <small class="dim">${time(one.fetched_at)}</small></p>
      ${one.shown.note ? html`<p class="dim">${one.shown.note}</p>` : null}<pre tabindex="0">${one.shown.text}</pre></li>`)}</ol>
    <${Pager} tokens=${tokens} next=${next} onTurn=${turned => setChosen({ ...chosen, tokens: turned })} />
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
