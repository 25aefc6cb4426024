// How the items of the present run are filled: of each kind, the share of items in which a field has a value, and what selectors found.

import { html } from "../html.js";
import { get, ofResource } from "../api.js";
import { count, share } from "../format.js";
import { Status, Table } from "../parts.js";
import { usePoll } from "../poll.js";
import { to } from "../route.js";

// Milliseconds between two looks at the statistics, which are read from the frontier.
const PERIOD = 10_000;

export function Fields({ name, run, plugin }) {
  const load = usePoll(signal => get(ofResource(name, "statistics"), {}, signal), [name, run], PERIOD);
  const [kinds, plans] = [load.value?.kinds, load.value?.plans].map(one => Object.entries(one ?? {}).sort(([a], [b]) => (a < b ? -1 : 1)));
  return html`<${Status} load=${load} isEmpty=${!kinds.length} empty="No item yet in this run." />
    ${kinds.map(([kind, one]) => html`<${Kind} key=${kind} kind=${kind} statistics=${one} />`)}
    ${plans.map(([plan, one]) => html`<${Plan} key=${plan} plan=${plan} statistics=${one} />`)}
    ${plugin && kinds.length ? html`<p><a href=${to(["plugins", plugin])}>Schemas of ${plugin}</a></p>` : null}`;
}

function Kind({ kind, statistics: { items, filled, always_empty } }) {
  const rows = [...Object.entries(filled).map(([field, n]) => [field, Number(n)]), ...always_empty.map(field => [field, 0])];
  rows.sort(([, one], [, other]) => one - other);
  return html`<h2>Items of kind ${kind || "none"}: ${count(items)}</h2>
    <${Table} caption=${`Fields of kind ${kind}`} heads=${["Field", "Has a value in", "Share"]}>${rows.map(
      ([field, n]) => html`<tr key=${field}><th scope="row">${field}</th><td>${count(n)}</td>
        <td><${Share} n=${n} of=${Number(items)} label=${`${field} has a value`} /></td></tr>`,
    )}<//>`;
}

function Plan({ plan, statistics: { pages, matched, unmatched } }) {
  const rows = [...Object.entries(matched).map(([selector, n]) => [selector, Number(n)]), ...unmatched.map(selector => [selector, 0])];
  rows.sort(([, one], [, other]) => one - other);
  return html`<h2>Selectors of ${plan || "the plan"}: ${count(pages)} ${Number(pages) === 1 ? "page" : "pages"}</h2>
    <${Table} caption=${`Selectors of ${plan}`} heads=${["Selector", "Matched on", "Share"]}>${rows.map(
      ([selector, n]) => html`<tr key=${selector}><th scope="row"><code>${selector}</code></th><td>${count(n)}</td>
        <td><${Share} n=${n} of=${Number(pages)} label=${`${selector} matched`} /></td></tr>`,
    )}<//>`;
}

const Share = ({ n, of, label }) => html`<progress max=${of || 1} value=${n} aria-label=${label}></progress> ${share(n, of)}`;
