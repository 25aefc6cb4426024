// Runs of a resource that are remembered, the latest first, each with the difference to the run before and the way to two runs side by side.

import { html } from "../html.js";
import { get, ofResource } from "../api.js";
import { count, time, took } from "../format.js";
import { Status, Table } from "../parts.js";
import { usePoll } from "../poll.js";
import { to } from "../route.js";
import { Compared } from "./compared.js";

// Milliseconds between two looks.
const PERIOD = 5_000;

const HEADS = ["Run", "Started", ["Took", "wide"], "Outcome", "Pages", "Items", ["Dead", "wide"], ["Reason", "wide"],
  ["More", "acts"]];

// With `hasChanges`, each run leads to the changes of its items. `query` names two runs that are compared.
export function Runs({ name, hasChanges, query }) {
  const load = usePoll(signal => get(ofResource(name, "runs"), {}, signal), [name], PERIOD);
  const runs = load.value?.runs ?? [];
  return html`<${Status} load=${load} isEmpty=${!runs.length} empty="None yet." />
    ${runs.length ? html`<${Table} caption="Runs" heads=${HEADS}>${runs.map((one, i) => {
      const before = runs[i + 1]?.run === one.run - 1 ? runs[i + 1] : undefined;
      return html`<${Row} key=${one.run} name=${name} run=${one} before=${before} hasChanges=${hasChanges} />`;
    })}<//>` : null}
    <${Compared} name=${name} runs=${runs} query=${query} />`;
}

function Row({ name, run, before, hasChanges }) {
  const changes = to(["resources", name, "items"], { show: "changes", run: run.run });
  const sides = before && to(["resources", name, "schedule"], { before: before.run, after: run.run });
  return html`<tr><th scope="row">${count(run.run)}</th><td>${time(run.started_at)}</td><td class="wide">${took(run)}</td>
    <td>${run.outcome}</td><td>${compared(run, before, "pages")}</td><td>${compared(run, before, "items")}</td>
    <td class="wide">${compared(run, before, "dead")}</td><td class="wide">${run.reason}</td>
    <td class="acts">${hasChanges ? html`<a href=${changes} aria-label=${`Changes of run ${run.run}`}>Changes</a> ` : null}
      ${sides ? html`<a href=${sides} aria-label=${`Compare run ${run.run} with the one before`}>Compare</a>` : null}</td></tr>`;
}

// A number of a run. The run that goes on is not compared yet.
function compared(run, before, field) {
  const n = Number(run[field]);
  const difference = before && Number(run.ended_at) ? n - Number(before[field]) : 0;
  if (!difference) return count(n);
  return `${count(n)} (${difference > 0 ? "+" : "−"}${count(Math.abs(difference))})`;
}
