// All resources, in pages of the master's own list: filters, live numbers, and actions on one or many of them.

import { html } from "../html.js";
import { useState } from "../vendor/hooks.mjs";
import { get } from "../api.js";
import { changeAll, changeEach, pause, resume, useBulk } from "../actions.js";
import { itemYield, lookAt, pagesDone, progress, rateKey, useRates } from "../counts.js";
import { useChanges, useSummary } from "../events.js";
import { count, known, NONE, rate } from "../format.js";
import { Choice, emptyPage, Pager, Phase, ResourceLink, Status, Table } from "../parts.js";
import { usePoll } from "../poll.js";
import { go, to } from "../route.js";

const PAGE_SIZE = 100;
// Milliseconds from one look at the page that is shown to the next. For a filter, the master may have to look at every
// resource, so that a list with filters is looked at less often.
const PERIOD = 3_000;
const PERIOD_FILTERED = 10_000;

const PHASES = [["", "all"], ["running", "running"], ["pending", "pending"], ["paused", "paused"],
  ["finished", "finished"], ["failed", "failed"]];
const HEADS = [["Tick", "tick"], "Resource", "Phase", "Pages/s", ["Items/s", "wide"], "Items", ["Items a page", "wide"],
  ["Dead", "wide"], ["Progress", "wide"], ["Plugin", "wide"], ["Owner", "wide"], ["Pause", "acts"]];

// Each list has a state of its own: what still goes on for one does not touch the next.
export function Resources({ query }) {
  const { phase = "", prefix = "", label = "", plugin = "" } = query;
  const filters = { phase, prefix, label, plugin };
  return html`<${List} key=${JSON.stringify(filters)} filters=${filters} />`;
}

function List({ filters }) {
  // Pages before this one, and resources of this page that are ticked.
  const [{ tokens, ticked }, setPlace] = useState({ tokens: [""], ticked: new Set() });
  const tick = change => setPlace(now => ({ ...now, ticked: change(now.ticked) }));
  const { total } = useSummary();

  const page_token = tokens.at(-1);
  const isFiltered = Object.values(filters).some(Boolean);
  const period = isFiltered ? PERIOD_FILTERED : PERIOD;
  const load = usePoll(async signal => {
    const page = await get("crawler/resource", { ...filters, page_size: PAGE_SIZE, page_token }, signal);
    return { ...page, at: performance.now() };
  }, [page_token], period);
  const resources = load.value?.resources ?? [];
  useChanges(changes => {
    const shown = new Set(resources.map(one => one.spec.name));
    const isMeant = ([name, { before, now }]) => shown.has(name) || isCrossing(filters, name, before, now);
    if ([...changes].some(isMeant)) load.againAfter(isFiltered ? period : 0);
  });
  const rates = useRates(load.value, period, () => resources.map(one => lookAt(one, load.value.at)));

  const names = resources.map(one => one.spec.name);
  const tickAll = isTicked => tick(() => new Set(isTicked ? names : []));
  const chosen = names.filter(name => ticked.has(name));
  const each = async verb => {
    // What could not be done stays ticked.
    const done = new Set(await changeEach(verb, chosen));
    tick(now => new Set([...now].filter(name => !done.has(name))));
    load.again();
  };
  const all = async verb => {
    await changeAll(verb, filters);
    load.again();
  };
  const next = load.value?.next_page_token;
  const empty = emptyPage(tokens, next, "No resource passes the filters.");
  return html`<h1>Resources <small>${known(total)}</small></h1>
    <${Filters} filters=${filters} />
    <${Bulk} nChosen=${chosen.length} each=${each} all=${all} />
    <${Status} load=${load} isEmpty=${!resources.length} empty=${empty} />
    ${resources.length ? html`
      <label class="tick"><input type="checkbox" checked=${chosen.length === names.length}
        onChange=${event => tickAll(event.currentTarget.checked)} /> Tick all of this page</label>
      <${Table} caption="Resources" heads=${HEADS}>${resources.map(one => html`<${Row} key=${one.spec.id}
        resource=${one} rates=${rates.get(rateKey(one))} isTicked=${ticked.has(one.spec.name)}
        onTick=${() => tick(now => toggled(now, one.spec.name))} again=${load.again} />`)}<//>` : null}
    <${Pager} tokens=${tokens} next=${next} onTurn=${turned => setPlace({ tokens: turned, ticked: new Set() })} />`;
}

// Actions on many resources, one at a time.
function Bulk({ nChosen, each, all }) {
  const bulk = useBulk();
  const isBusy = bulk !== null;
  return html`<p class="buttons">
      <a class="button main" href=${to(["add"])}>Add</a>
      <button type="button" disabled=${isBusy || !nChosen} onClick=${() => each("pause")}>Pause ticked (${nChosen})</button>
      <button type="button" disabled=${isBusy || !nChosen} onClick=${() => each("resume")}>Resume ticked</button>
      <button type="button" disabled=${isBusy} onClick=${() => all("pause")}>Pause all that pass the filters</button>
      <button type="button" disabled=${isBusy} onClick=${() => all("resume")}>Resume all that pass the filters</button>
    </p>
    ${isBusy ? html`<p class="dim" role="status">${bulk}</p>` : null}`;
}

// True if a change may bring a resource into a list, or take it out. The page knows no labels and no plugins of what it does
// not show.
function isCrossing({ phase, prefix }, name, before, now) {
  const isIn = its => its !== undefined && (!phase || its.toLowerCase() === phase);
  return name.startsWith(prefix) && isIn(before) !== isIn(now);
}

function toggled(names, name) {
  const next = new Set(names);
  if (!next.delete(name)) next.add(name);
  return next;
}

// The filters are those of the master's list. They stand in the address, so that a list can be kept and sent.
function Filters({ filters }) {
  const set = changes => go(["resources"], { ...filters, ...changes });
  const submit = event => {
    event.preventDefault();
    const { prefix, label, plugin } = event.currentTarget.elements;
    set({ prefix: prefix.value.trim(), label: label.value.trim(), plugin: plugin.value.trim() });
  };
  return html`<form class="filters" role="search" onSubmit=${submit}>
    <${Choice} label="Phase" value=${filters.phase} options=${PHASES} onChange=${phase => set({ phase })} />
    <label>Name begins with <input name="prefix" type="search" defaultValue=${filters.prefix} data-filter /></label>
    <label>Label <input name="label" defaultValue=${filters.label} placeholder="KEY=VALUE" /></label>
    <label>Plugin <input name="plugin" defaultValue=${filters.plugin} placeholder="NAME@VERSION" /></label>
    <button>Filter</button>
  </form>`;
}

function Row({ resource, rates, isTicked, onTick, again }) {
  const { spec, phase, reason, paused, counts, shards } = resource;
  const owners = [...new Set(shards.map(shard => shard.owner).filter(Boolean))];
  const found = itemYield(counts);
  return html`<tr>
    <td class="tick"><input type="checkbox" aria-label=${`Tick ${spec.name}`} checked=${isTicked} onChange=${onTick} /></td>
    <th scope="row"><${ResourceLink} name=${spec.name} /></th>
    <td title=${reason}><${Phase} phase=${phase} /></td>
    <td>${rate(rates?.pages)}</td>
    <td class="wide">${rate(rates?.items)}</td>
    <td>${count(counts?.items)}</td>
    <td class="wide">${found === null ? NONE : found.toFixed(2)}</td>
    <td class="wide">${count(counts?.dead)}</td>
    <td class="wide"><${Progress} counts=${counts} /></td>
    <td class="wide">${resource.plugin_version ? `${spec.plugin.split("@")[0]}@${resource.plugin_version}` : spec.plugin}</td>
    <td class="wide">${owners.length > 2 ? `${owners.length} workers` : owners.join(", ")}</td>
    <td class="acts"><${PauseOrResume} name=${spec.name} phase=${phase} paused=${paused} again=${again} /></td>
  </tr>`;
}

// The button of a row that pauses a resource, or resumes it; nothing if its run is over and it is not paused.
export function PauseOrResume({ name, phase, paused, again }) {
  if (!paused && phase !== "Running" && phase !== "Pending") return null;
  return html`<${PauseButton} name=${name} paused=${paused} again=${again} />`;
}

// The button that pauses a resource, or resumes it, whatever its run does.
export function PauseButton({ name, paused, again }) {
  const [verb, act] = paused ? ["Resume", resume] : ["Pause", pause];
  const press = async () => {
    await act(name);
    again();
  };
  return html`<button type="button" aria-label=${`${verb} ${name}`} onClick=${press}>${verb}</button>`;
}

// The share of the known URLs whose end is reached. It may become less: pages lead to further URLs.
export function Progress({ counts }) {
  const share = progress(counts);
  if (share === null) return NONE;
  const known = pagesDone(counts) + (counts?.due ?? 0);
  const told = `${count(pagesDone(counts))} of ${count(known)} known URLs`;
  return html`<span title=${told}><progress value=${share} max="1" aria-label=${told}></progress> ${Math.floor(share * 100)} %</span>`;
}
