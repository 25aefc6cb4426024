// Schedules of all resources: when runs begin by themselves, and what became of the last due times.

import { html } from "../html.js";
import { useState } from "../vendor/hooks.mjs";
import { askEach, get, ofResource } from "../api.js";
import { useChanges } from "../events.js";
import { count } from "../format.js";
import { Fault, Pager, Phase, ResourceLink, Status, Table } from "../parts.js";
import { usePoll } from "../poll.js";
import { go } from "../route.js";
import { PauseOrResume } from "./resources.js";
import { lastDue, nextRun, phaseOf, timesOf, zoneOf } from "./schedule.js";

// Resources of one page. Each of them is asked for its schedule, because no call lists schedules.
const PAGE_SIZE = 50;
// Milliseconds between two looks.
const PERIOD = 15_000;

const HEADS = ["Resource", "Phase", "Runs begin", ["Zone", "wide"], "Next run", ["Overlap", "wide"], ["Missed", "wide"],
  "Last due time", ["Pause", "acts"]];

export const Schedules = ({ query: { prefix = "" } }) => html`<${List} key=${prefix} prefix=${prefix} />`;

function List({ prefix }) {
  const [tokens, setTokens] = useState([""]);
  const page_token = tokens.at(-1);
  const load = usePoll(signal => page({ prefix, page_size: PAGE_SIZE, page_token }, signal), [page_token], PERIOD);
  const { rows = [], n_resources = 0, next_page_token: next } = load.value ?? {};
  useChanges(changes => {
    const isOther = ({ resource }) => {
      const change = changes.get(resource.spec.name);
      return change !== undefined && change.before !== change.now;
    };
    if (rows.some(isOther)) load.again();
  });
  const submit = event => {
    event.preventDefault();
    go(["schedules"], { prefix: event.currentTarget.elements.prefix.value.trim() });
  };
  const empty = next ? "None on this page; others may follow." : "No resource here has a schedule.";
  return html`<h1>Schedules</h1>
    <form class="filters" role="search" onSubmit=${submit}>
      <label>Name begins with <input name="prefix" type="search" defaultValue=${prefix} data-filter /></label>
      <button>Filter</button> <button type="button" onClick=${load.again}>Load again</button>
    </form>
    <${Status} load=${load} isEmpty=${!rows.length} empty=${empty} />
    ${rows.length ? html`<p class="dim">Resources of this page: ${count(n_resources)}; with a schedule: ${count(rows.length)}.</p>
      <${Table} caption="Schedules" heads=${HEADS}>${rows.map(
        ({ resource, schedule }) => html`<${Row} key=${resource.spec.id} resource=${resource} schedule=${schedule} again=${load.again} />`,
      )}<//>` : null}
    <${Pager} tokens=${tokens} next=${next} onTurn=${setTokens} />`;
}

function Row({ resource: { spec: { name }, phase }, schedule, again }) {
  const head = html`<th scope="row"><${ResourceLink} name=${name} tab="schedule" /></th><td><${Phase} phase=${phase} /></td>`;
  if (schedule.fault) return html`<tr>${head}<td colspan="7"><${Fault} fault=${schedule.fault} /></td></tr>`;
  const { spec } = schedule;
  return html`<tr>${head}
    <td><code>${timesOf(spec)}</code></td><td class="wide">${zoneOf(spec)}</td><td>${nextRun(schedule)}</td>
    <td class="wide">${spec.overlap}</td><td class="wide">${spec.missed}</td><td>${lastDue(schedule)}</td>
    <td class="acts"><${PauseOrResume} name=${name} phase=${phaseOf(phase, schedule)} again=${again} /></td></tr>`;
}

// Resources of a page of the master's list that have a schedule, each with it.
async function page(query, signal) {
  const { resources, next_page_token } = await get("crawler/resource", query, signal);
  const schedules = await askEach(resources.map(resource => resource.spec.name), name => scheduleOf(name, signal));
  const rows = resources.map(resource => ({ resource, schedule: schedules.get(resource.spec.name) }));
  return { rows: rows.filter(({ schedule }) => schedule), n_resources: resources.length, next_page_token };
}

// A schedule that the master cannot read hides no others.
async function scheduleOf(name, signal) {
  try {
    return await get(ofResource(name, "schedule"), {}, signal);
  } catch (fault) {
    if (fault.status !== 412) throw fault;
    return { fault };
  }
}
