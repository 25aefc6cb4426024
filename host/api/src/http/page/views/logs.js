// The log of a crawl: the lines that its workers keep, the newest first, and further ones as they come.

import { html } from "../html.js";
import { useEffect, useRef, useState } from "../vendor/hooks.mjs";
import { lines, ofResource } from "../api.js";
import { useChanges, useReturns } from "../events.js";
import { count, time } from "../format.js";
import { keyOf, latest } from "../latest.mjs";
import { Address, Choice, Fault, Status, Table } from "../parts.js";

// Lines that are shown. A master may keep more.
const SHOWN = 500;
// Milliseconds: how often lines that have come are shown, and how long the page waits before it opens the log again.
const SHOW_EVERY = 250;
const WAIT_FIRST = 1_000;
const WAIT_MOST = 30_000;

const LEVELS = ["debug", "info", "warn", "error"];

export function Logs({ resource: { spec, shards } }) {
  const [least, setLeast] = useState("debug");
  const [words, setWords] = useState("");
  const load = useLog(spec.name, shards.map(({ shard, owner, epoch }) => `${shard}:${owner}:${epoch}`).join(" "));
  const { all = [] } = load.value ?? {};
  const wanted = words.toLowerCase();
  const shown = all.filter(line =>
    LEVELS.indexOf(line.level) >= LEVELS.indexOf(least)
    && `${line.message} ${line.url} ${line.rule}`.toLowerCase().includes(wanted));
  return html`<p class="filters">
      <${Choice} label="Level" value=${least} onChange=${setLeast}
        options=${LEVELS.map(level => [level, level === "error" ? level : `${level} and above`])} />
      <label>Words <input type="search" value=${words} onInput=${event => setWords(event.currentTarget.value)} data-filter /></label>
      <button type="button" onClick=${load.again}>Load again</button>
    </p>
    <${Fault} fault=${load.value && load.fault} /><${Status} load=${load.value ? { value: load.value } : load} isEmpty=${!shown.length} empty=${all.length ? "No line has these words." : "The log is empty."} />
    ${all.length === SHOWN ? html`<p class="dim">The last ${count(SHOWN)} lines; the master may keep more.</p>` : null}
    ${shown.length ? html`<${Table} caption="Log" heads=${["When", "Level", "Message", ["URL", "wide"], ["Rule", "wide"], ["Shard", "wide"]]}>${shown.map(
      line => html`<tr key=${keyOf(line)} class=${`level-${LEVELS.indexOf(line.level)}`}>
        <td>${time(line.at)}</td><td>${line.level}</td>
        <td>${line.message}${line.more ? ` (and ${count(line.more)} more)` : ""}</td>
        <td class="wide"><${Address} url=${line.url} /></td><td class="wide">${line.rule}</td><td class="wide">${line.shard}</td></tr>`,
    )}<//>` : null}`;
}

// Returns the lines as they come. A log that breaks off is opened again after a while, and one that has ended once the resource
// has changed, because another run may have begun. A master reads the lines of each shard where it is crawled at first, so that the
// log is also opened again once `places` differ. A connection that is dead is silent as a crawl may be, so that the log is opened
// again with the stream of events, too. A page that nobody sees gives its connection back, and reads the log anew afterwards. Lines
// that are shown stay meanwhile.
function useLog(name, places) {
  const [load, setLoad] = useState({});
  const [isSeen, setSeen] = useState(!document.hidden);
  const [nAsked, setAsked] = useState(0);
  const onChange = useRef(() => {});
  const nReturns = useReturns();
  const log = useRef({ lines: [] });
  useChanges(changes => changes.has(name) && onChange.current());
  useEffect(() => {
    const onShown = () => setSeen(!document.hidden);
    document.addEventListener("visibilitychange", onShown);
    return () => document.removeEventListener("visibilitychange", onShown);
  }, []);
  useEffect(() => {
    if (!isSeen) return undefined;
    const leaving = new AbortController();
    const news = new News();
    onChange.current = () => news.come();
    keepReading(name, leaving.signal, news, log.current, setLoad);
    return () => leaving.abort();
  }, [name, places, nReturns, isSeen, nAsked]);
  return { ...load, again: () => setAsked(n => n + 1) };
}

// Whether something has come since the last time, for one who waits for it.
class News {
  #hasCome = false;
  #wake = () => {};

  come() {
    this.#hasCome = true;
    this.#wake();
  }

  forget() {
    this.#hasCome = false;
  }

  async wait() {
    if (!this.#hasCome) await new Promise(done => (this.#wake = done));
  }
}

async function keepReading(name, signal, news, log, setLoad) {
  let wait = WAIT_FIRST;
  while (!signal.aborted) {
    news.forget();
    const began = performance.now();
    const fault = await read(name, signal, log, setLoad);
    if (signal.aborted) return;
    if (fault) setLoad(before => ({ value: before.value, fault: fault.mayPass ? fault.triedAgain() : fault }));
    else await news.wait();
    if (performance.now() - began > WAIT_MOST) wait = WAIT_FIRST;
    await new Promise(done => setTimeout(done, wait * (0.5 + Math.random() / 2)));
    wait = Math.min(wait * 2, WAIT_MOST);
  }
}

// Reads the log to its end, and shows the lines from time to time, beside those that were shown before. Returns the fault that it
// broke off with, if there was one.
async function read(name, signal, log, setLoad) {
  let all = [];
  let timer = null;
  const show = () => {
    timer = null;
    if (signal.aborted) return;
    log.lines = latest(log.lines, all, SHOWN);
    setLoad({ value: { all: log.lines.slice().reverse() } });
  };
  const showSoon = () => {
    timer ??= setTimeout(show, SHOW_EVERY);
  };
  try {
    const query = { follow: "true" };
    for await (const line of lines(ofResource(name, "logs"), { query, signal, isEndless: true, onOpen: showSoon })) {
      all.push(JSON.parse(line));
      if (all.length > 2 * SHOWN) all = latest([], all, SHOWN);
      showSoon();
    }
    return null;
  } catch (fault) {
    return fault;
  } finally {
    // The last lines are shown as well.
    if (timer !== null) {
      clearTimeout(timer);
      show();
    }
  }
}
