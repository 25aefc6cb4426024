// Hosts of a crawl: which can be asked, which have to wait, and why.

import { html } from "../html.js";
import { ofResource } from "../api.js";
import { count, known, NONE, time } from "../format.js";
import { ResourceLink } from "../parts.js";
import { go } from "../route.js";
import { PagedList } from "./lists.js";

const STATES = ["ready", "waiting", "backing-off", "given-up", "idle"];
const HEADS = ["Host", "State", "Due", ["In flight", "wide"], "Not before", ["Delay", "wide"], ["Delay by", "wide"], ["Failures", "wide"], ["Reason", "wide"]];

// A master knows hosts by crawl only: the reader names one.
export function Hosts({ query: { resource = "" } }) {
  const submit = event => {
    event.preventDefault();
    go(["hosts"], { resource: event.currentTarget.elements.resource.value.trim() });
  };
  return html`<h1>Hosts</h1>
    <form class="filters" onSubmit=${submit} key=${resource}>
      <label>Resource <input name="resource" required defaultValue=${resource} data-filter /></label>
      <button>Show</button>
    </form>
    ${resource
      ? html`<h2>Hosts of <${ResourceLink} name=${resource} /></h2><${HostList} name=${resource} />`
      : html`<p class="blank">Each crawl keeps its own hosts. Name the resource whose hosts you want to see.</p>`}`;
}

export function HostList({ name }) {
  return html`<${PagedList} path=${ofResource(name, "hosts")} field="hosts" caption="Hosts" states=${STATES} heads=${HEADS}
    row=${host => html`<tr key=${host.name}><th scope="row">${host.name}</th><td>${host.state}</td>
      <td>${count(host.due)}</td><td class="wide">${known(host.in_flight)}</td><td>${time(host.not_before)}</td>
      <td class="wide">${host.delay_ms ? `${count(host.delay_ms)} ms` : NONE}</td><td class="wide">${host.delay_by}</td>
      <td class="wide">${count(host.failures)}</td><td class="wide">${host.reason}</td></tr>`} />`;
}
