// One resource: its state, what can be done to it, and a tab for each side of its crawl.

import { html } from "../html.js";
import { get, ofResource } from "../api.js";
import { remove, restart } from "../actions.js";
import { itemYield, lookAt, pagesDone, rateKey, runKey, useRates } from "../counts.js";
import { useChanges } from "../events.js";
import { bytes, count, NONE, rate, time } from "../format.js";
import { Fault, Figures, Phase, Status, Table } from "../parts.js";
import { usePoll } from "../poll.js";
import { go, to } from "../route.js";
import { RateChart, usePoints } from "./chart.js";
import { Errors } from "./errors.js";
import { Frontier } from "./frontier.js";
import { History } from "./history.js";
import { Results } from "./items.js";
import { LimitsUsed } from "./limits.js";
import { Logs } from "./logs.js";
import { PauseButton, Progress } from "./resources.js";
import { Schedule } from "./schedule.js";
import { Settings } from "./settings.js";

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
    <${Tab} tab=${tab} resource=${resource} rates=${rates} points=${points} at=${load.value.at} query=${query} again=${load.again} />`;
}

function Tab({ tab, resource, rates, points, at, query, again }) {
  const { name } = resource.spec;
  switch (tab) {
    case "": return html`<${Now} resource=${resource} rates=${rates} points=${points} at=${at} />`;
    case "frontier": return html`<${Frontier} name=${name} query=${query} />`;
    case "errors": return html`<${Errors} resource=${resource} query=${query} />`;
    case "items": return html`<${Results} name=${name} run=${resource.run} plugin=${fullName(resource)} query=${query} />`;
    case "schedule": return html`<${Schedule} key=${resource.spec.id} resource=${resource} query=${query} />`;
    case "logs": return html`<${Logs} key=${resource.spec.id} resource=${resource} />`;
    case "events": return html`<${History} path=${ofResource(name, "events")} caption="Events" />`;
    case "settings": return html`<${Settings} key=${resource.spec.id} resource=${resource} again=${again} />`;
    default: return html`<p class="blank">There is no such side of a resource.</p>`;
  }
}

// Plugin that runs, with its version; empty while the resource waits for one.
const fullName = ({ spec, plugin_version }) => (plugin_version ? `${spec.plugin.split("@")[0]}@${plugin_version}` : "");

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
  const { counts, shards, run } = resource;
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
      ["Plugin", fullName(resource) || "waits for its plugin"],
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
    )}<//>
    <${LimitsUsed} shards=${shards} />`;
}
