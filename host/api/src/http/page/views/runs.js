// Runs of a resource that are remembered, the latest first, each with the difference to the run before.

import { html } from "../html.js";
import { get, ofResource } from "../api.js";
import { count, NONE, time } from "../format.js";
import { Status, Table } from "../parts.js";
import { usePoll } from "../poll.js";
import { to } from "../route.js";
import { duration } from "../times.mjs";

// Milliseconds between two looks.
const PERIOD = 5_000;

const HEADS = ["Run", "Started", ["Took", "wide"], "Outcome", "Pages", "Items", ["Dead", "wide"], ["Reason", "wide"]];

// With `hasChanges`, each run leads to the changes of its items.
export function Runs({ name, hasChanges }) {
  const load = usePoll(signal => get(ofResource(name, "runs"), {}, signal), [name], PERIOD);
  const runs = load.value?.runs ?? [];
  const heads = hasChanges ? [...HEADS, ["Changes", "acts"]] : HEADS;
  return html`<${Status} load=${load} isEmpty=${!runs.length} empty="None yet." />
    ${runs.length ? html`<${Table} caption="Runs" heads=${heads}>${runs.map((one, i) => {
      const before = runs[i + 1]?.run === one.run - 1 ? runs[i + 1] : undefined;
      return html`<${Row} key=${one.run} name=${name} run=${one} before=${before} hasChanges=${hasChanges} />`;
    })}<//>` : null}`;
}

function Row({ name, run, before, hasChanges }) {
  const changes = to(["resources", name, "items"], { show: "changes", run: run.run });
  return html`<tr><th scope="row">${count(run.run)}</th><td>${time(run.started_at)}</td><td class="wide">${took(run)}</td>
    <td>${run.outcome}</td><td>${compared(run, before, "pages")}</td><td>${compared(run, before, "items")}</td>
    <td class="wide">${compared(run, before, "dead")}</td><td class="wide">${run.reason}</td>
    ${hasChanges ? html`<td class="acts"><a href=${changes} aria-label=${`Changes of run ${run.run}`}>Changes</a></td>` : null}</tr>`;
}

// Seconds are enough for what takes minutes or hours.
function took({ started_at, ended_at }) {
  if (!Number(started_at) || !Number(ended_at)) return NONE;
  return duration(Math.max(0, Math.round((ended_at - started_at) / 1_000)) * 1_000);
}

// A number of a run. The run that goes on is not compared yet.
function compared(run, before, field) {
  const n = Number(run[field]);
  const difference = before && Number(run.ended_at) ? n - Number(before[field]) : 0;
  if (!difference) return count(n);
  return `${count(n)} (${difference > 0 ? "+" : "−"}${count(Math.abs(difference))})`;
}
