// Two runs of a resource side by side: numbers, plugin, settings, and what became of items between them.

import { html } from "../html.js";
import { get, ofResource } from "../api.js";
import { bytes, count, NONE, time, took } from "../format.js";
import { Status, Table } from "../parts.js";
import { usePoll } from "../poll.js";
import { go } from "../route.js";

// Characters of a digest that tell two apart.
const DIGEST_SHOWN = 12;

// The runs stand in the address, so that the comparison can be sent to others.
export function Compared({ name, runs, query: { before = "", after = "" } }) {
  if (runs.length < 2) return null;
  const submit = event => {
    event.preventDefault();
    const { elements } = event.currentTarget;
    go(["resources", name, "schedule"], { before: elements.before.value, after: elements.after.value });
  };
  const field = (label, key, preset) => html`<label>${label} <input name=${key} type="number" min="1" max=${runs[0].run} required
    defaultValue=${preset} /></label>`;
  return html`<h2>Two runs side by side</h2>
    <form class="filters" onSubmit=${submit} key=${`${before} ${after}`}>
      ${field("Run", "before", before || runs[1].run)} ${field("and run", "after", after || runs[0].run)}
      <button>Compare</button>
    </form>
    ${before && after ? html`<${Sides} name=${name} before=${before} after=${after} />` : null}`;
}

function Sides({ name, before, after }) {
  const load = usePoll(signal => get(ofResource(name, "runs/diff"), { before, after }, signal), [name, before, after]);
  if (!load.value) return html`<${Status} load=${load} />`;
  const { before: one, after: other, ...diff } = load.value;
  return html`<${Table} caption="Two runs" heads=${["", `Run ${one.run}`, `Run ${other.run}`, "Difference"]}>${rows(one, other).map(
      ([title, left, right, difference, isPart], i) => html`<tr key=${i}><th scope="row" class=${isPart ? "part" : ""}>${title}</th>
        <td>${left}</td><td>${right}</td><td>${difference}</td></tr>`,
    )}<//>
    <p>${settings(diff)}</p><p>${items(diff)}</p>`;
}

// Rows as `[title, of one run, of the other, difference, isPart]`. A part stands below what it is a part of.
function rows(one, other) {
  const word = (title, of) => [title, of(one), of(other), of(one) === of(other) ? "" : "differs"];
  const number = (title, of, as = count) => [title, as(of(one)), as(of(other)), difference(of(other) - of(one), as)];
  const parts = field => [...new Set([one, other].flatMap(run => Object.keys(run[field] ?? {})))].sort()
    .map(key => [...number(key, run => Number(run[field]?.[key] ?? 0)), true]);
  return [
    ["Started", time(one.started_at), time(other.started_at), ""],
    ["Took", took(one), took(other), ""],
    word("Outcome", run => run.outcome),
    word("Plugin", run => run.plugin || NONE),
    word("Digest", run => run.plugin_digest.slice(0, DIGEST_SHOWN) || NONE),
    word("Changes of the resource", run => (Number(run.generation) ? count(run.generation) : NONE)),
    number("Pages", run => Number(run.pages)),
    ...parts("outcomes"),
    number("Dead", run => Number(run.dead)),
    ...parts("dead_by_reason"),
    number("Items", run => Number(run.items)),
    number("Bodies", run => Number(run.bytes), bytes),
  ];
}

function difference(n, as) {
  if (!n) return "";
  return `${n > 0 ? "+" : "−"}${as(Math.abs(n))}`;
}

function settings({ settings: names, settings_known: areKnown }) {
  if (!areKnown) return "The settings are not known of both runs.";
  return names.length ? `Settings that differ: ${names.join(", ")}.` : "The settings are the same.";
}

function items({ changes, compared, uncompared }) {
  if (!changes) return "Items were not compared from run to run, or the comparison cannot be read.";
  const { added, changed, removed, complete } = changes;
  const told = `Items: ${count(added)} added, ${count(changed)} changed, ${count(removed)} removed, told by ${runs(compared)}.`;
  const missing = Number(uncompared) ? ` Not compared, or not kept any more: ${runs(uncompared)}.` : "";
  return `${told}${missing}${complete ? "" : " A run was not complete, so not all removed items are told."}`;
}

const runs = n => (Number(n) === 1 ? "1 run" : `${count(n)} runs`);
