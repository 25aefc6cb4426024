// Masters and workers: who leads, what each carries, and the draining of workers.

import { html } from "../html.js";
import { change, get } from "../api.js";
import { useRates } from "../counts.js";
import { attempt, confirm } from "../dialog.js";
import { count, known, rate, span, time } from "../format.js";
import { Fault, Status, Table } from "../parts.js";
import { usePoll } from "../poll.js";
import { lookAtWorker, workerKey } from "../rates.mjs";
import { History } from "./history.js";

// Milliseconds between two looks.
const PERIOD = 2_000;
// Milliseconds after which a worker tells its sums again.
const TOLD_EVERY = 30_000;

// Returns what all workers of an answer come to together: their rates, each between the last two times that the worker
// told its sums, the longest of these times, and the rates by worker. A sum is `null` unless all workers have told their part.
export function useNodeRates(answer) {
  const workers = (answer?.nodes ?? []).filter(node => node.role === "worker");
  const byKey = useRates(answer, TOLD_EVERY, () => workers.map(lookAtWorker));
  const rates = [...byKey.values()].filter(Boolean);
  const sum = (list, name) =>
    workers.length && list.length === workers.length ? list.reduce((whole, one) => whole + Number(one[name]), 0) : null;
  const totals = workers.map(node => node.totals).filter(Boolean);
  return {
    pages: sum(rates, "pages"),
    items: sum(rates, "items"),
    over: rates.length === workers.length ? Math.max(0, ...rates.map(one => one.over)) : 0,
    inFlight: sum(totals, "in_flight"),
    waiting: sum(totals, "waiting"),
    of: node => byKey.get(workerKey(node)),
  };
}

export function Nodes() {
  const load = usePoll(signal => get("crawler/node", {}, signal), [], PERIOD);
  const nodes = load.value?.nodes ?? [];
  const rates = useNodeRates(load.value);
  const heads = ["Node", "Role", "Shards", ["Weight", "wide"], "Pages/s", ["Items/s", "wide"], ["In flight", "wide"],
    ["Address", "wide"], ["Version", "wide"], ["Up for", "wide"], ["Labels", "wide"], "State"];
  return html`<h1>Nodes</h1>
    <${Status} load=${load} isEmpty=${!nodes.length} empty="There is no node." />
    ${nodes.length ? html`<${Table} caption="Masters and workers" heads=${heads}>${nodes.map(
      node => html`<${Node} key=${node.id} node=${node} rates=${rates.of(node)} again=${load.again} />`,
    )}<//>` : null}
    <p class="dim">A node is listed for as long as it holds its lease. Events tell of those that have lost it.</p>
    <h2>Events</h2>
    <${History} path="crawler/node/events" caption="Events of nodes" ofNodes />`;
}

function Node({ node, rates, again }) {
  const isWorker = node.role === "worker";
  const [verb, label] = node.draining ? ["Undo", `Undo the draining of ${node.id}`] : ["Drain", `Drain ${node.id}`];
  return html`<tr><th scope="row">${node.id}</th>
    <td>${node.role}${node.leader ? " (leader)" : ""}</td>
    <td>${isWorker ? `${count(node.load)} of ${count(node.capacity)}` : ""}</td>
    <td class="wide">${isWorker ? count(node.weight) : ""}</td>
    <td>${isWorker ? rate(rates?.pages) : ""}</td>
    <td class="wide">${isWorker ? rate(rates?.items) : ""}</td>
    <td class="wide">${isWorker ? known(node.totals?.in_flight) : ""}</td>
    <td class="wide">${node.address}</td><td class="wide">${node.version}</td>
    <td class="wide" title=${time(node.started_at)}>${node.started_at ? span(Date.now() - Number(node.started_at)) : ""}</td>
    <td class="wide">${Object.entries(node.labels ?? {}).map(([key, value]) => `${key}=${value}`).join(" ")}</td>
    <td>${node.reason ? html`<${Fault} fault=${{ message: node.reason }} />` : null}
      ${node.draining ? "draining " : ""}
      ${isWorker ? html`<button type="button" aria-label=${label} onClick=${() => drain(node, again)}>${verb}</button>` : null}
    </td></tr>`;
}

async function drain({ id, draining }, again) {
  const question = {
    title: draining ? `Let ${id} take shards again?` : `Drain ${id}?`,
    text: draining
      ? "It may get shards again."
      : "Its shards move to other workers, and it takes no new ones until the draining is undone.",
    verb: draining ? "Undo" : "Drain",
  };
  if (!(await confirm(question))) return;
  const path = `crawler/node/${encodeURIComponent(id)}/drain`;
  await attempt(`${question.verb} ${id}`, () => change("POST", path, {}, draining ? { undo: true } : {}));
  again();
}
