// Items that are held because they are not like those of the last good run, and what may be done with them.

import { html } from "../html.js";
import { change, get, ofResource } from "../api.js";
import { attempt, confirm } from "../dialog.js";
import { count, time } from "../format.js";
import { Fault, Table } from "../parts.js";
import { usePoll } from "../poll.js";

// Milliseconds between two looks at the holds, which are read from the frontier.
const PERIOD = 10_000;

const HEADS = ["Hold", "Kind", "Host", "Items", "Why", ["Since", "wide"], ["Decide", "acts"]];

export function Held({ name, n }) {
  const load = usePoll(signal => get(ofResource(name, "quarantine"), {}, signal), [name], PERIOD);
  const holds = load.value?.holds ?? [];
  const act = (hold, action) => async () => {
    await decide(name, hold, action);
    load.again();
  };
  return html`<h2>Held items</h2>
    <${Fault} fault=${load.fault} />
    ${holds.length ? html`<${Table} caption="Held items by kind and host" heads=${HEADS}>${holds.map(
      hold => html`<tr key=${hold.id}><th scope="row">${hold.id}</th><td>${hold.kind}</td><td>${hold.host || "others"}</td>
        <td>${count(hold.items)}</td><td>${hold.field}: ${hold.now}, before ${hold.before}</td>
        <td class="wide">${time(hold.since)}</td>
        <td class="acts"><button type="button" aria-label=${`Release: ${hold.id}`} onClick=${act(hold, "release")}>Release</button>
          <button type="button" class="grave" aria-label=${`Drop: ${hold.id}`} onClick=${act(hold, "drop")}>Drop</button></td></tr>`,
    )}<//>` : html`<p class="blank">${count(n)} are held.</p>`}`;
}

async function decide(name, hold, action) {
  const question = action === "release" ? {
    title: `Release ${count(hold.items)} items?`,
    text: `They go to the sinks of ${name}, and their kind and host are not judged until a run has learned them anew.`,
    verb: "Release",
  } : {
    title: `Drop ${count(hold.items)} items?`,
    text: `They are removed from ${name}, and no sink gets them.`,
    verb: "Drop",
    isGrave: true,
  };
  if (!(await confirm(question))) return;
  const body = { action, hold: hold.id };
  await attempt(`${question.verb} hold ${hold.id}`, () => change("POST", ofResource(name, "quarantine"), body));
}
