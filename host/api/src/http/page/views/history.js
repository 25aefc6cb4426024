// What happened to a resource or to nodes, the newest first, as the master keeps it.

import { useRef } from "../vendor/hooks.mjs";
import { html } from "../html.js";
import { lines } from "../api.js";
import { count, time } from "../format.js";
import { Fault, Status, Table } from "../parts.js";
import { usePoll } from "../poll.js";

// Events that are shown. A master may keep more.
const SHOWN = 50;
// Milliseconds between two looks.
const PERIOD = 10_000;

// What is known before the first look.
const NOTHING = { events: [], version: "" };

// Kinds with the numbers of a run that they ended.
const ENDS = ["finished", "failed", "run-stopped"];

export function History({ path, caption, ofNodes = false }) {
  const known = useRef(NOTHING);
  const load = usePoll(signal => latest(path, ofNodes ? known : { current: NOTHING }, signal), [path], PERIOD);
  const events = load.value ?? [];
  const heads = ["When", ...(ofNodes ? ["Node"] : []), "Event", ...(ofNodes ? [] : ["Run", "Worker"]), ["By", "wide"], "Details"];
  return html`<${Fault} fault=${load.value && load.fault} />
    <${Status} load=${load.value ? { value: load.value } : load} isEmpty=${!events.length} empty="There is no event yet." />
    ${events.length === SHOWN ? html`<p class="dim">The last ${count(SHOWN)} events; the master may keep more.</p>` : null}
    ${events.length ? html`<${Table} caption=${caption} heads=${heads}>${events.map(event => html`<tr>
      <td>${time(event.at)}</td>${ofNodes ? html`<th scope="row">${event.node}</th>` : null}
      <td>${event.kind}</td>
      ${ofNodes ? null : html`<td>${Number(event.run) ? count(event.run) : ""}</td><td>${event.worker}</td>`}
      <td class="wide">${event.by}</td><td>${details(event)}</td></tr>`)}<//>` : null}`;
}

// Returns the latest events, the newest first: those of `known`, which it brings up to date, and what came after their version.
async function latest(path, known, signal) {
  let { events, version } = known.current;
  events = [...events];
  for await (const line of lines(path, { query: { version }, signal })) {
    const event = JSON.parse(line);
    version = event.version || version;
    events.push(event);
    if (events.length > 2 * SHOWN) events = events.slice(-SHOWN);
  }
  events = events.slice(-SHOWN);
  known.current = { events, version };
  return [...events].reverse();
}

function details({ kind, shard, from, generation, pages, items, dead, times, why }) {
  return [
    shard ? `shard ${shard}` : "",
    from ? `from ${from}` : "",
    Number(generation) ? `generation ${generation}` : "",
    ENDS.includes(kind) ? `pages ${count(pages)}, items ${count(items)}, dead ${count(dead)}` : "",
    Number(times) > 1 ? `${count(times)} times` : "",
    why,
  ].filter(Boolean).join("; ");
}
