// How near the calls of rules come to their limits: the largest use of each limit by one call, since the frontiers were opened.

import { html } from "../html.js";
import { get, ofResource } from "../api.js";
import { bytes, count, NONE, share } from "../format.js";
import { Phase, ResourceLink, Status, Table } from "../parts.js";
import { usePoll } from "../poll.js";
import { duration } from "../times.mjs";

// Milliseconds between two looks at the resources of a plugin, and resources that are looked at.
const PERIOD = 10_000;
const RESOURCES_MAX = 10;

// Units of limits; others count pieces.
const UNITS = { memory: bytes, body: bytes, "item-bytes": bytes, "capture-bytes": bytes, cpu: duration, timeout: duration };

// Returns the largest uses over all shards as `{limit, used, max}`, the nearest to its limit first.
function usesOf(shards) {
  const largest = new Map();
  for (const [limit, use] of shards.flatMap(shard => Object.entries(shard.limits_used ?? {}))) {
    const [used, max] = [Number(use.used), Number(use.limit)];
    if (used / max >= (largest.get(limit)?.used ?? 0) / max) largest.set(limit, { limit, used, max });
  }
  return [...largest.values()].sort((one, other) => other.used / other.max - one.used / one.max);
}

const Use = ({ limit, used, max }) => html`<progress max=${max} value=${used} aria-label=${`Largest use of ${limit}`}></progress> ${share(used, max)}`;

// Limits of one resource; nothing while no worker tells any.
export function LimitsUsed({ shards }) {
  const uses = usesOf(shards);
  if (!uses.length) return null;
  return html`<h2>Largest use of limits by one call</h2>
    <${Table} caption="Largest use of limits" heads=${["Limit", "Used", "Of", "Share"]}>${uses.map(one => {
      const unit = UNITS[one.limit] ?? count;
      return html`<tr key=${one.limit}><th scope="row">${one.limit}</th><td>${unit(one.used)}</td><td>${unit(one.max)}</td>
        <td><${Use} ...${one} /></td></tr>`;
    })}<//>`;
}

// Resources that run a plugin, each with the limit that it comes nearest to.
export function Runners({ plugin }) {
  const load = usePoll(signal => runnersOf(plugin, signal), [plugin], PERIOD);
  const { resources = [], isAll = true } = load.value ?? {};
  return html`<h2>Resources that run it</h2>
    <${Status} load=${load} isEmpty=${!resources.length} empty="None." />
    ${resources.length ? html`<${Table} caption="Resources that run it" heads=${["Resource", "Phase", "Nearest limit of a call"]}>${resources.map(
      ({ spec, phase, shards }) => {
        const [nearest] = usesOf(shards);
        return html`<tr key=${spec.id}><th scope="row"><${ResourceLink} name=${spec.name} /></th><td><${Phase} phase=${phase} /></td>
          <td>${nearest ? html`${nearest.limit}: <${Use} ...${nearest} />` : NONE}</td></tr>`;
      },
    )}<//>` : null}
    ${isAll ? null : html`<p class="dim">These are the first ${count(RESOURCES_MAX)}.</p>`}`;
}

async function runnersOf(plugin, signal) {
  const list = await get("crawler/resource", { plugin, page_size: RESOURCES_MAX }, signal);
  const looks = list.resources.map(resource => get(ofResource(resource.spec.name), {}, signal).catch(fault => {
    // It was deleted since the list was made.
    if (fault.status === 404) return null;
    throw fault;
  }));
  return { resources: (await Promise.all(looks)).filter(Boolean), isAll: !list.next_page_token };
}
