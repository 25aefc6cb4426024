// What the cluster does at present: resources by phase, rates, nodes, and what went wrong lately.

import { html } from "../html.js";
import { get } from "../api.js";
import { lookAt, pagesDone, useRates } from "../counts.js";
import { useSummary } from "../events.js";
import { count, NONE, rate, short, span, time } from "../format.js";
import { Address, Fault, Figures, Phase, ResourceLink, Status, Table } from "../parts.js";
import { usePoll } from "../poll.js";
import { to } from "../route.js";
import { useNodeRates } from "./nodes.js";

// Milliseconds between two looks.
const PERIOD = 2_000;
// Resources and errors that are shown.
const SHOWN = 20;

const PHASES = ["Running", "Pending", "Paused", "Finished", "Failed"];

export function Overview() {
  const { byPhase, total, state } = useSummary();
  const nodes = usePoll(signal => get("crawler/node", {}, signal), [], PERIOD);
  const running = usePoll(signal => inPhase("running", signal), [], PERIOD);
  const failed = usePoll(signal => inPhase("failed", signal), [byPhase.Failed], 0);
  const sums = useNodeRates(nodes.value);
  const rates = useRates(running.value, () => running.value.resources.map(one => lookAt(one, running.value.at)));
  const isBlank = state === "live" && total === 0;
  return html`<h1>Overview</h1>
    <p class="buttons"><a class="button main" href=${to(["add"])}>Add a resource</a></p>
    <${Figures} figures=${[
      ...PHASES.map(phase => [
        phase,
        html`<a href=${to(["resources"], { phase: phase.toLowerCase() })}>${count(byPhase[phase])}</a>`,
      ]),
      ["Resources", count(total)],
    ]} />
    ${isBlank ? html`<p class="blank">There is no resource yet. <a href=${to(["add"])}>Add one</a> to begin a crawl.</p>` : null}
    <${Cluster} nodes=${nodes} sums=${sums} />
    <h2>Running</h2>
    <${Status} load=${running} isEmpty=${!running.value?.resources.length} empty="Nothing runs." />
    ${running.value?.resources.length
      ? html`<${Running} resources=${running.value.resources} rates=${rates} />` : null}
    ${running.value?.next_page_token
      ? html`<p><a href=${to(["resources"], { phase: "running" })}>All that run</a></p>` : null}
    <${Errors} running=${running.value?.resources ?? []} failed=${failed} />`;
}

// A page of those that are in a phase, with the time of the look. A page of a list that is filtered may be empty although
// others follow.
async function inPhase(phase, signal) {
  const resources = [];
  let page_token = "";
  do {
    const page = await get("crawler/resource", { phase, page_size: SHOWN, page_token }, signal);
    resources.push(...page.resources);
    page_token = page.next_page_token;
  } while (page_token && resources.length < SHOWN);
  return { resources, next_page_token: page_token, at: performance.now() };
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
      ["Workers", html`<a href=${to(["nodes"])}>${count(workers.length)}</a>`],
      ["Draining", count(workers.filter(node => node.draining).length)],
      [`Pages/s${over}`, rate(sums.pages)],
      [`Items/s${over}`, rate(sums.items)],
      ["Pages in flight", short(sums.inFlight)],
      ["Crawls that wait", count(sums.waiting)],
    ]} />
    <p class="dim">Workers tell their sums every half minute.</p>`;
}

function Running({ resources, rates }) {
  const heads = ["Resource", "Pages/s", "Items/s", "Pages", "Items", ["Dead", "wide"], ["Owner", "wide"]];
  return html`<${Table} caption="Resources that run" heads=${heads}>${resources.map(({ spec, counts, shards }) => {
    const own = rates.get(spec.name);
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
    ${!resources.length && !lines.length ? html`<p class="blank">Nothing lately.</p>` : null}
    ${resources.length ? html`<${Table} caption="Resources that have failed" heads=${["Resource", "Phase", "Reason"]}>${resources.map(
      one => html`<tr key=${one.spec.name}><th scope="row"><${ResourceLink} name=${one.spec.name} /></th>
        <td><${Phase} phase=${one.phase} /></td><td>${one.reason}</td></tr>`,
    )}<//>` : null}
    ${lines.length ? html`<${Table} caption="Last errors of what runs" heads=${["When", "Resource", "Message", ["URL", "wide"]]}>${lines.map(
      line => html`<tr><td>${time(line.at)}</td><th scope="row"><${ResourceLink} name=${line.name} tab="errors" /></th>
        <td>${line.message}</td><td class="wide"><${Address} url=${line.url} /></td></tr>`,
    )}<//>` : null}`;
}
