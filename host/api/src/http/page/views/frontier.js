// The frontier of a resource: what waits, why a URL was or was not fetched, and the lists of hosts and URLs.

import { html } from "../html.js";
import { get, ofResource } from "../api.js";
import { count, NONE, time } from "../format.js";
import { Address, Fault, Figures, Status } from "../parts.js";
import { usePoll } from "../poll.js";
import { go } from "../route.js";
import { HostList } from "./hosts.js";
import { PagedList } from "./lists.js";

// Milliseconds between two looks at the totals.
const PERIOD = 5_000;

const HEADS = ["URL", "State", "Outcome", "Attempt", ["Depth", "wide"], ["Rule", "wide"], ["Since", "wide"], ["From", "wide"]];

export function Frontier({ name, query }) {
  const load = usePoll(signal => get(ofResource(name, "frontier"), {}, signal), [name], PERIOD);
  const totals = load.value;
  return html`<h2>Why this URL?</h2><${Why} name=${name} url=${query.url ?? ""} />
    <h2>Totals</h2><${Status} load=${load} />
    ${totals ? html`<${Figures} figures=${[
      ["Due", count(totals.counts?.due)],
      ["Dead letters", count(totals.dead_letters)],
      ["Hosts", count(totals.hosts)],
      ...Object.entries(totals.hosts_by_state ?? {}).map(([state, n]) => [`Hosts ${state}`, count(n)]),
      ["Items not delivered", count(totals.undelivered)],
      ["Suspects", count(totals.suspects)],
      ["Unclean stops", count(totals.unclean_stops)],
    ]} />` : null}
    <h2>Hosts</h2><${HostList} name=${name} />
    <h2>URLs</h2><${PagedList} path=${ofResource(name, "frontier/urls")} field="urls" caption="URLs of the frontier"
      states=${["due", "done", "dead"]} heads=${HEADS} row=${entry => html`<${Entry} entry=${entry} />`} />`;
}

function Entry({ entry }) {
  return html`<tr><th scope="row">${entry.method === "GET" ? "" : `${entry.method} `}<${Address} url=${entry.url} /></th>
    <td>${entry.state}</td><td>${[entry.outcome, entry.reason, entry.detail].filter(Boolean).join(": ")}</td>
    <td>${count(entry.attempt)}</td><td class="wide">${count(entry.depth)}</td><td class="wide">${entry.rule}</td>
    <td class="wide">${time(entry.since)}</td><td class="wide"><${Address} url=${entry.referrer} /></td></tr>`;
}

// The question stands in the address of the page, so that it can be sent to others.
function Why({ name, url }) {
  const submit = event => {
    event.preventDefault();
    go(["resources", name, "frontier"], { url: event.currentTarget.elements.url.value.trim() });
  };
  return html`<form class="filters" onSubmit=${submit}>
      <label class="long">URL <input name="url" type="url" required defaultValue=${url} placeholder="https://…" data-filter /></label>
      <button>Ask</button>
    </form>
    ${url ? html`<${Answer} name=${name} url=${url} />` : null}`;
}

function Answer({ name, url }) {
  const load = usePoll(signal => get(ofResource(name, "frontier/why"), { url }, signal), [name, url]);
  if (!load.value) return html`<${Status} load=${load} />`;
  const { state, text, entry } = load.value;
  return html`<${Fault} fault=${load.fault} /><div class="answer" role="status"><p><b>${state}</b></p><pre tabindex="0">${text}</pre>
    ${entry ? html`<${Figures} figures=${[["Rule", entry.rule || NONE], ["Depth", count(entry.depth)],
      ["Attempt", count(entry.attempt)], ["Since", time(entry.since)], ["From", html`<${Address} url=${entry.referrer} />`]]} />` : null}
  </div>`;
}
