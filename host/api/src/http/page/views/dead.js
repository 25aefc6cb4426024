// Pages of a run that were given up for one reason, each with the command that saves it as a test of its plugin.

import { html } from "../html.js";
import { get, ofResource } from "../api.js";
import { count, time } from "../format.js";
import { Address, Status, Table } from "../parts.js";
import { usePoll } from "../poll.js";
import { fetchCommand } from "../shell.mjs";

// Pages that are shown, dead letters that one call asks for, and calls at most.
const SHOWN = 50;
const PAGE_SIZE = 1_000;
const CALLS_MAX = 10;

const HEADS = ["URL", ["What is known", "wide"], ["Rule", "wide"], ["Since", "wide"], ["From", "wide"], ["Test", "acts"]];

export function DeadPages({ spec, run, reason }) {
  const load = usePoll(signal => pagesOf(spec.name, reason, signal), [spec.name, run, reason]);
  const { pages = [], isAll = true } = load.value ?? {};
  return html`<h2>Pages given up as ${reason}</h2>
    <p class="filters"><button type="button" onClick=${load.again}>Load again</button></p>
    <${Status} load=${load} isEmpty=${!pages.length} empty=${isAll ? "None is left." : "None among the dead letters that were looked at."} />
    ${pages.length ? html`<${Table} caption="Pages given up" heads=${HEADS}>${pages.map(
      entry => html`<tr><th scope="row">${entry.method === "GET" ? "" : `${entry.method} `}<${Address} url=${entry.url} /></th>
        <td class="wide">${entry.detail}</td><td class="wide">${entry.rule}</td><td class="wide">${time(entry.since)}</td>
        <td class="wide"><${Address} url=${entry.referrer} /></td><td class="acts"><${Command} spec=${spec} entry=${entry} /></td></tr>`,
    )}<//>` : null}
    ${pages.length && !isAll ? html`<p class="dim">These are the first ${count(pages.length)}. <code>crawler frontier list</code> shows all.</p>` : null}`;
}

// A list by reason would have the master read all dead letters for each page of it, so they are read here as long as it takes few calls.
async function pagesOf(name, reason, signal) {
  const pages = [];
  let page_token = "";
  for (let n = 0; n < CALLS_MAX; n += 1) {
    const answer = await get(ofResource(name, "frontier/urls"), { state: "dead", page_size: PAGE_SIZE, page_token }, signal);
    pages.push(...answer.urls.filter(entry => entry.reason === reason));
    page_token = answer.next_page_token;
    if (pages.length > SHOWN || !page_token) break;
  }
  return { pages: pages.slice(0, SHOWN), isAll: !page_token && pages.length <= SHOWN };
}

function Command({ spec, entry }) {
  const command = fetchCommand(spec, entry);
  if (!command) return null;
  return html`<details><summary aria-label=${`Save as a test: ${entry.url}`}>Save as a test</summary>
    <p class="dim">In the folder of the plugin:</p><pre tabindex="0">${command}</pre></details>`;
}
