// What went wrong with a run: held items, the URLs that were given up by reason with their pages, links that were not followed, and the last
// errors.

import { html } from "../html.js";
import { change, get, ofResource } from "../api.js";
import { attempt, confirm } from "../dialog.js";
import { count, time } from "../format.js";
import { Address, Fault, Table } from "../parts.js";
import { usePoll } from "../poll.js";
import { to } from "../route.js";
import { DeadPages } from "./dead.js";
import { Held } from "./held.js";

// Milliseconds between two looks at the statistics, which are read from the frontier.
const PERIOD = 10_000;

const byCount = counts => Object.entries(counts ?? {}).sort(([, one], [, other]) => other - one);

export function Errors({ resource: { spec, run, counts, shards }, query: { reason = "" } }) {
  const { name } = spec;
  const load = usePoll(signal => get(ofResource(name, "statistics"), {}, signal), [name, run], PERIOD);
  const statistics = load.value;
  const dead = byCount(counts?.dead_by_reason);
  const refused = byCount(counts?.refused_links);
  const statuses = byCount(statistics?.statuses);
  const lines = shards.flatMap(shard => shard.last_errors).sort((one, other) => Number(other.at) - Number(one.at));
  return html`<${Fault} fault=${load.fault} />
    ${counts?.held ? html`<${Held} name=${name} n=${counts.held} />` : null}
    <h2>URLs that were given up</h2>
    ${dead.length ? html`<${Table} caption="Dead letters by reason" heads=${["Reason", "URLs", "For example", ["Pages and another try", "acts"]]}>${dead.map(
      ([one, n]) => html`<tr key=${one}><th scope="row">${one}</th><td>${count(n)}</td>
        <td><${Address} url=${statistics?.dead_examples?.[one]} /></td>
        <td class="acts"><a href=${to(["resources", name, "errors"], { reason: one })} aria-label=${`Pages: ${one}`}
          aria-current=${one === reason ? "true" : undefined}>Pages</a> <button type="button" aria-label=${`Try again: ${one}`}
          onClick=${() => redrive(name, one)}>Try again</button></td></tr>`,
    )}<//>` : html`<p class="blank">None in this run.</p>`}
    ${reason ? html`<${DeadPages} key=${reason} spec=${spec} run=${run} reason=${reason} />` : null}
    <h2>Last errors</h2>
    ${lines.length ? html`<${Table} caption="Last errors" heads=${["When", "Message", "URL", ["Rule", "wide"]]}>${lines.map(
      line => html`<tr><td>${time(line.at)}</td><td>${line.message}${line.more ? ` (and ${count(line.more)} more)` : ""}</td>
        <td><${Address} url=${line.url} /></td><td class="wide">${line.rule}</td></tr>`,
    )}<//>` : html`<p class="blank">The workers tell of none.</p>`}
    <h2>Answers by status</h2>
    ${statuses.length ? html`<${Table} caption="Answers by status" heads=${["Status", "Answers"]}>${statuses.map(
      ([status, n]) => html`<tr key=${status}><th scope="row">${status === "0" ? "others" : status}</th><td>${count(n)}</td></tr>`,
    )}<//>` : html`<p class="blank">None are known.</p>`}
    <h2>Links that were not followed</h2>
    ${refused.length ? html`<${Table} caption="Refused links by reason" heads=${["Reason", "Links"]}>${refused.map(
      ([reason, n]) => html`<tr key=${reason}><th scope="row">${reason}</th><td>${count(n)}</td></tr>`,
    )}<//>` : html`<p class="blank">None in this run.</p>`}`;
}

async function redrive(name, reason) {
  const question = {
    title: `Try the URLs again that ended with ${reason}?`,
    text: `All dead letters of ${name} with this reason wait to be fetched again.`,
    verb: "Try again",
  };
  if (!(await confirm(question))) return;
  await attempt(`Try ${reason} again`, () => change("POST", ofResource(name, "frontier/redrive"), { reason }));
}
