// One resource: its state, what can be done to it, and a tab for each side of its crawl.

import { html } from "../html.js";
import { get, ofResource } from "../api.js";
import { remove, restart } from "../actions.js";
import { itemYield, lookAt, pagesDone, rateKey, runKey, useRates } from "../counts.js";
import { useChanges } from "../events.js";
import { bytes, count, NONE, rate, time } from "../format.js";
import { Fault, Figures, json, Phase, Status, Table } from "../parts.js";
import { usePoll } from "../poll.js";
import { go, to } from "../route.js";
import { RateChart, usePoints } from "./chart.js";
import { Errors } from "./errors.js";
import { Frontier } from "./frontier.js";
import { History } from "./history.js";
import { Results } from "./items.js";
import { Logs } from "./logs.js";
import { PauseButton, Progress } from "./resources.js";
import { Schedule } from "./schedule.js";

// Milliseconds between two looks. Events tell of changes, and not of counts.
const PERIOD = 2_000;

const TABS = [["", "Now"], ["frontier", "Frontier"], ["errors", "Errors"], ["items", "Items"],
  ["schedule", "Schedule"], ["logs", "Log"], ["events", "Events"], ["settings", "Settings"]];

export function Resource({ name, tab = "", query }) {
  const load = usePoll(async signal => {
    const resource = await get(ofResource(name), {}, signal);
    return { resource, at: performance.now() };
  }, [name], PERIOD);
  useChanges(changes => changes.has(name) && load.again());
  const resource = load.value?.resource;
  const byKey = useRates(load.value, PERIOD, () => [lookAt(resource, load.value.at)]);
  const rates = resource && byKey.get(rateKey(resource));
  const points = usePoints(resource && runKey(resource), load.value?.at, rates);
  if (!resource) return html`<h1>${name}</h1><${Status} load=${load} />`;
  return html`<h1>${name} <${Phase} phase=${resource.phase} /></h1>
    <${Fault} fault=${load.fault} />
    ${resource.reason ? html`<p class="reason">${resource.reason}</p>` : null}
    <${Acts} resource=${resource} again=${load.again} />
    <nav class="tabs" aria-label="Sides of the resource">${TABS.map(([part, text]) => html`<a
      href=${to(["resources", name, ...(part ? [part] : [])])} aria-current=${part === tab ? "page" : undefined}>${text}</a>`)}</nav>
    <${Tab} tab=${tab} resource=${resource} rates=${rates} points=${points} at=${load.value.at} query=${query} />`;
}

function Tab({ tab, resource, rates, points, at, query }) {
  const { name } = resource.spec;
  switch (tab) {
    case "": return html`<${Now} resource=${resource} rates=${rates} points=${points} at=${at} />`;
    case "frontier": return html`<${Frontier} name=${name} query=${query} />`;
    case "errors": return html`<${Errors} resource=${resource} />`;
    case "items": return html`<${Results} name=${name} run=${resource.run} query=${query} />`;
    case "schedule": return html`<${Schedule} key=${resource.spec.id} resource=${resource} />`;
    case "logs": return html`<${Logs} key=${resource.spec.id} resource=${resource} />`;
    case "events": return html`<${History} path=${ofResource(name, "events")} caption="Events" />`;
    case "settings": return html`<${Settings} resource=${resource} />`;
    default: return html`<p class="blank">There is no such side of a resource.</p>`;
  }
}

function Acts({ resource: { spec, paused }, again }) {
  const renew = async () => {
    await restart(spec);
    again();
  };
  const drop = async () => {
    if (await remove(spec)) go(["resources"]);
  };
  return html`<p class="buttons">
    <${PauseButton} name=${spec.name} paused=${paused} again=${again} />
    <button type="button" onClick=${renew}>Restart</button>
    <button type="button" class="grave" onClick=${drop}>Delete</button>
  </p>`;
}

function Now({ resource, rates, points, at }) {
  const { counts, shards, run, plugin_version } = resource;
  const found = itemYield(counts);
  return html`<${Figures} figures=${[
      ["Run", count(run)],
      ["Pages/s", rate(rates?.pages)],
      ["Items/s", rate(rates?.items)],
      ["Pages", count(pagesDone(counts))],
      ["Items", count(counts?.items)],
      ...(counts?.held ? [["Items held", html`<a href=${to(["resources", resource.spec.name, "errors"])}>${count(counts.held)}</a>`]] : []),
      ["Items a page", found === null ? NONE : found.toFixed(2)],
      ["Dead", count(counts?.dead)],
      ["Tried again", count(counts?.retries)],
      ["Due", count(counts?.due)],
      ["In flight", count(counts?.in_flight)],
      ["Hosts", count(counts?.hosts)],
      ["Bodies", bytes(Number(counts?.bytes ?? 0))],
      ["Plugin", plugin_version ? `${resource.spec.plugin.split("@")[0]}@${plugin_version}` : "waits for its plugin"],
      ["First page", time(counts?.began_at)],
      ["Latest answer", time(counts?.ended_at)],
      ["Progress", html`<${Progress} counts=${counts} />`],
    ]} />
    <${RateChart} key=${runKey(resource)} at=${at} points=${points} rates=${rates} />
    <h2>Shards</h2>
    <${Table} caption="Shards" heads=${["Shard", "State", "Owner", "Pages", "Items", ["Dead", "wide"], ["Due", "wide"], "Reason"]}>${shards.map(
      shard => html`<tr key=${shard.shard}><th scope="row">${shard.shard}</th><td>${shard.state}</td><td>${shard.owner || NONE}</td>
        <td>${count(pagesDone(shard.counts))}</td><td>${count(shard.counts?.items)}</td>
        <td class="wide">${count(shard.counts?.dead)}</td><td class="wide">${count(shard.counts?.due)}</td>
        <td>${shard.reason}</td></tr>`,
    )}<//>`;
}

function Settings({ resource: { spec, generation, added_at, plugin_digest } }) {
  const parts = [["Params", spec.params], ["Settings of the crawl", spec.crawl], ["Limits of a call", spec.limits],
    ["Placement", spec.placement], ["Labels", spec.labels ?? {}]];
  return html`<${Figures} figures=${[["Plugin", spec.plugin], ["Digest", html`<code>${plugin_digest || NONE}</code>`],
      ["Added", time(added_at)], ["Changes", count(generation)], ["Id", spec.id]]} />
    <p class="dim">What is not named here has its default. <code>crawler resource update ${spec.name}</code> changes it.</p>
    ${parts.map(([title, value]) => html`<h2>${title}</h2><pre tabindex="0">${json(value)}</pre>`)}`;
}
