// The log of a crawl: the lines that its workers keep, the newest first, and further ones as they come.

import { html } from "../html.js";
import { useEffect, useState } from "../vendor/hooks.mjs";
import { lines, ofResource } from "../api.js";
import { count, time } from "../format.js";
import { Address, Choice, Fault, Status, Table } from "../parts.js";

// Lines that are shown. A master may keep more.
const SHOWN = 500;
// Milliseconds: how often lines that have come are shown.
const SHOW_EVERY = 250;

const LEVELS = ["debug", "info", "warn", "error"];

export function Logs({ name }) {
  const [least, setLeast] = useState("debug");
  const [words, setWords] = useState("");
  const load = useLog(name);
  const { all = [], nRead = 0 } = load.value ?? {};
  const wanted = words.toLowerCase();
  const shown = all.filter(line =>
    LEVELS.indexOf(line.level) >= LEVELS.indexOf(least)
    && `${line.message} ${line.url} ${line.rule}`.toLowerCase().includes(wanted));
  return html`<p class="filters">
      <${Choice} label="Level" value=${least} onChange=${setLeast}
        options=${LEVELS.map(level => [level, level === "error" ? level : `${level} and above`])} />
      <label>Words <input type="search" value=${words} onInput=${event => setWords(event.currentTarget.value)} data-filter /></label>
    </p>
    <${Fault} fault=${load.value && load.fault} /><${Status} load=${load.value ? { value: load.value } : load} isEmpty=${!shown.length} empty=${all.length ? "No line has these words." : "The log is empty."} />
    ${nRead > SHOWN ? html`<p class="dim">The last ${count(SHOWN)} of ${count(nRead)} lines.</p>` : null}
    ${shown.length ? html`<${Table} caption="Log" heads=${["When", "Level", "Message", ["URL", "wide"], ["Rule", "wide"], ["Shard", "wide"]]}>${shown.map(
      line => html`<tr key=${`${line.run} ${line.shard} ${line.number}`} class=${`level-${LEVELS.indexOf(line.level)}`}>
        <td>${time(line.at)}</td><td>${line.level}</td>
        <td>${line.message}${line.more ? ` (and ${count(line.more)} more)` : ""}</td>
        <td class="wide"><${Address} url=${line.url} /></td><td class="wide">${line.rule}</td><td class="wide">${line.shard}</td></tr>`,
    )}<//>` : null}`;
}

// Returns the lines as they come. A page that nobody sees gives its connection back, and reads the log anew afterwards.
function useLog(name) {
  const [load, setLoad] = useState({});
  const [isSeen, setSeen] = useState(!document.hidden);
  useEffect(() => {
    const onShown = () => setSeen(!document.hidden);
    document.addEventListener("visibilitychange", onShown);
    return () => document.removeEventListener("visibilitychange", onShown);
  }, []);
  useEffect(() => {
    if (!isSeen) return undefined;
    const leaving = new AbortController();
    const { signal } = leaving;
    let timer;
    const show = value => !signal.aborted && setLoad({ value });
    const end = fault => {
      clearTimeout(timer);
      if (!signal.aborted) setLoad(before => ({ value: before.value, fault }));
    };
    follow(name, signal, value => {
      clearTimeout(timer);
      timer = setTimeout(show, SHOW_EVERY, value);
    }).then(show, end);
    return () => {
      leaving.abort();
      clearTimeout(timer);
    };
  }, [name, isSeen]);
  return load;
}

async function follow(name, signal, onLines) {
  const all = [];
  let nRead = 0;
  const told = () => ({ all: all.slice(-SHOWN).reverse(), nRead });
  onLines(told());
  for await (const line of lines(ofResource(name, "logs"), { query: { follow: "true" }, signal, isEndless: true })) {
    nRead += 1;
    all.push(JSON.parse(line));
    if (all.length > 2 * SHOWN) all.splice(0, all.length - SHOWN);
    onLines(told());
  }
  return told();
}
