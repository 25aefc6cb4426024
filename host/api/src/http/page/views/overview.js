// What the cluster does at present: resources by phase, rates, nodes, and what went wrong lately.

import { html } from "../html.js";
import { get, ofResource } from "../api.js";
import { lookAt, pagesDone, rateKey, useRates } from "../counts.js";
import { namesIn, PHASES, useChanges, useSummary } from "../events.js";
import { count, known, NONE, rate, short, span, time } from "../format.js";
import { Address, Fault, Figures, Phase, ResourceLink, Status, Table } from "../parts.js";
import { usePoll } from "../poll.js";
import { to } from "../route.js";
import { useNodeRates } from "./nodes.js";

// Milliseconds from one look to the next.
const PERIOD = 2_000;
// Resources and errors that are shown.
const SHOWN = 20;
// Calls at once.
const AT_ONCE = 4;

export function Overview() {
  const { byPhase, total, isKnown } = useSummary();
  const nodes = usePoll(signal => get("crawler/node", {}, signal), [], PERIOD);
  const running = usePoll(async signal => isKnown ? inPhase("Running", signal) : undefined, [isKnown], PERIOD);
  const failed = usePoll(async signal => isKnown ? inPhase("Failed", signal) : undefined, [isKnown]);
  useChanges(changes => {
    if (concern(changes, "Running")) running.again();
    if (concern(changes, "Failed")) failed.again();
  });
  const sums = useNodeRates(nodes.value);
  const rates = useRates(running.value, PERIOD, () => running.value.resources.map(one => lookAt(one, running.value.at)));
  const isBlank = total === 0;
  return html`<h1>Overview</h1>
    <p class="buttons"><a class="button main" href=${to(["add"])}>Add a resource</a></p>
    <${Figures} figures=${[
      ...PHASES.map(phase => [
        phase,
        html`<a href=${to(["resources"], { phase: phase.toLowerCase() })}
          aria-label=${`${phase}: ${known(byPhase[phase])}`}>${known(byPhase[phase])}</a>`,
      ]),
      ["Resources", known(total)],
    ]} />
    ${isBlank ? html`<p class="blank">There is no resource yet. <a href=${to(["add"])}>Add one</a> to begin a crawl.</p>` : null}
    <${Cluster} nodes=${nodes} sums=${sums} />
    <h2>Running</h2>
    <${Status} load=${running} isEmpty=${!running.value?.resources.length} empty="Nothing runs." />
    ${running.value?.resources.length
      ? html`<${Running} resources=${running.value.resources} rates=${rates} />` : null}
    ${byPhase.Running > SHOWN
      ? html`<p><a href=${to(["resources"], { phase: "running" })}>All that run</a></p>` : null}
    <${Errors} running=${running.value?.resources ?? []} failed=${failed} />`;
}

// True if a resource has come into a phase or has left it.
const concern = (changes, phase) =>
  [...changes.values()].some(({ before, now }) => (before === phase) !== (now === phase));

// The first ones of those that are in a phase, with the time of the look. Their names are known from events: the master would
// look at all resources for a list of a phase.
async function inPhase(phase, signal) {
  const rest = namesIn(phase, SHOWN);
  const found = new Map(rest.map(name => [name, null]));
  const worker = async () => {
    for (let name = rest.shift(); name !== undefined; name = rest.shift()) {
      found.set(name, await get(ofResource(name), {}, signal).catch(fault => {
        // It was deleted meanwhile.
        if (fault.status === 404) return null;
        // The other workers have nothing left to ask for.
        rest.length = 0;
        throw fault;
      }));
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  return { resources: [...found.values()].filter(Boolean), at: performance.now() };
}

function Cluster({ nodes, sums }) {
  if (!nodes.value) return html`<${Status} load=${nodes} />`;
  const all = nodes.value.nodes;
  const workers = all.filter(node => node.role === "worker");
  const masters = all.filter(node => node.role === "master");
  const leader = masters.find(node => node.leader);
  const over = sums.over ? ` over ${span(sums.over)}` : "";
  return html`<h2>Cluster</h2><${Fault} fault=${nodes.fault} />
    <${Figures} figures=${[
      ["Leader", leader?.id ?? NONE],
      ["Masters", count(masters.length)],
      ["Workers", html`<a href=${to(["nodes"])} aria-label=${`Workers: ${count(workers.length)}`}>${count(workers.length)}</a>`],
      ["Draining", count(workers.filter(node => node.draining).length)],
      [`Pages/s${over}`, rate(sums.pages)],
      [`Items/s${over}`, rate(sums.items)],
      ["Pages in flight", known(sums.inFlight, short)],
      ["Crawls that wait", known(sums.waiting)],
    ]} />
    <p class="dim">Workers tell their sums at least every half minute.</p>`;
}

function Running({ resources, rates }) {
  const heads = ["Resource", "Pages/s", "Items/s", "Pages", "Items", ["Dead", "wide"], ["Owner", "wide"]];
  return html`<${Table} caption="Resources that run" heads=${heads}>${resources.map(one => {
    const { spec, counts, shards } = one;
    const own = rates.get(rateKey(one));
    return html`<tr key=${spec.name}><th scope="row"><${ResourceLink} name=${spec.name} /></th>
      <td>${rate(own?.pages)}</td><td>${rate(own?.items)}</td>
      <td>${count(pagesDone(counts))}</td><td>${count(counts?.items)}</td>
      <td class="wide">${count(counts?.dead)}</td>
      <td class="wide">${[...new Set(shards.map(shard => shard.owner).filter(Boolean))].join(", ")}</td></tr>`;
  })}<//>`;
}

function Errors({ running, failed }) {
  const ofOne = ({ spec, shards }) =>
    shards.flatMap(shard => shard.last_errors.map(line => ({ ...line, name: spec.name })));
  const lines = running.flatMap(ofOne).sort((one, other) => Number(other.at) - Number(one.at)).slice(0, SHOWN);
  const resources = failed.value?.resources ?? [];
  return html`<h2>What went wrong</h2><${Fault} fault=${failed.fault} />
    ${failed.value && !resources.length && !lines.length ? html`<p class="blank">Nothing lately.</p>` : null}
    ${resources.length ? html`<${Table} caption="Resources that have failed" heads=${["Resource", "Phase", "Reason"]}>${resources.map(
      one => html`<tr key=${one.spec.name}><th scope="row"><${ResourceLink} name=${one.spec.name} /></th>
        <td><${Phase} phase=${one.phase} /></td><td>${one.reason}</td></tr>`,
    )}<//>` : null}
    ${lines.length ? html`<${Table} caption="Last errors of what runs" heads=${["When", "Resource", "Message", ["URL", "wide"]]}>${lines.map(
      line => html`<tr><td>${time(line.at)}</td><th scope="row"><${ResourceLink} name=${line.name} tab="errors" /></th>
        <td>${line.message}</td><td class="wide"><${Address} url=${line.url} /></td></tr>`,
    )}<//>` : null}`;
}
