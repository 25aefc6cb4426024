// Schedules of all resources: when runs begin by themselves, and what became of the last due times.

import { html } from "../html.js";
import { useState } from "../vendor/hooks.mjs";
import { get } from "../api.js";
import { emptyPage, Pager, Phase, ResourceLink, Status, Table } from "../parts.js";
import { usePoll } from "../poll.js";
import { go } from "../route.js";
import { PauseOrResume } from "./resources.js";
import { lastDue, nextRun, timesOf, zoneOf } from "./schedule.js";

const PAGE_SIZE = 50;
// Milliseconds between two looks.
const PERIOD = 5_000;

const HEADS = ["Resource", "Phase", "Runs begin", ["Zone", "wide"], "Next run", ["Overlap", "wide"], ["Missed", "wide"],
  "Last due time", ["Pause", "acts"]];

export const Schedules = ({ query: { prefix = "" } }) => html`<${List} key=${prefix} prefix=${prefix} />`;

function List({ prefix }) {
  const [tokens, setTokens] = useState([""]);
  const page_token = tokens.at(-1);
  const load = usePoll(
    signal => get("crawler/schedule", { prefix, page_size: PAGE_SIZE, page_token }, signal), [page_token], PERIOD,
  );
  const { schedules = [], next_page_token: next } = load.value ?? {};
  const submit = event => {
    event.preventDefault();
    go(["schedules"], { prefix: event.currentTarget.elements.prefix.value.trim() });
  };
  const empty = emptyPage(tokens, next, "No resource here has a schedule.");
  return html`<h1>Schedules</h1>
    <form class="filters" role="search" onSubmit=${submit}>
      <label>Name begins with <input name="prefix" type="search" defaultValue=${prefix} data-filter /></label>
      <button>Filter</button>
    </form>
    <${Status} load=${load} isEmpty=${!schedules.length} empty=${empty} />
    ${schedules.length ? html`<${Table} caption="Schedules" heads=${HEADS}>${schedules.map(
      one => html`<${Row} key=${one.resource.spec.id} ...${one} again=${load.again} />`,
    )}<//>` : null}
    <${Pager} tokens=${tokens} next=${next} onTurn=${setTokens} />`;
}

function Row({ resource: { spec: { name }, phase, paused }, schedule, again }) {
  const head = html`<th scope="row"><${ResourceLink} name=${name} tab="schedule" /></th><td><${Phase} phase=${phase} /></td>`;
  if (!schedule) return html`<tr>${head}<td colspan="7">The schedule was written by a later version, or is damaged.</td></tr>`;
  const { spec } = schedule;
  return html`<tr>${head}
    <td><code>${timesOf(spec)}</code></td><td class="wide">${zoneOf(spec)}</td><td>${nextRun(schedule)}</td>
    <td class="wide">${spec.overlap}</td><td class="wide">${spec.missed}</td><td>${lastDue(schedule)}</td>
    <td class="acts"><${PauseOrResume} name=${name} phase=${phase} paused=${paused} again=${again} /></td></tr>`;
}
