// Live state of the resources: the stream of events of the master, read for as long as the page is seen.
//
// The page keeps one word for each resource, its phase, so that 10 000 of them cost little. Views read what they show by
// calls of their own; events only tell them when. `EventSource` cannot send a token, so the stream is read here.

import { useEffect, useRef, useState } from "./vendor/hooks.mjs";
import { lines } from "./api.js";

// Milliseconds: how often readers are told at most, and how long the page waits before it asks for the stream again.
const TELL_EVERY = 250;
const WAIT_FIRST = 1_000;
const WAIT_MOST = 30_000;
// Without a line for so long, the connection is taken for broken: a master sends a heartbeat every 15 s.
const SILENCE = 45_000;

export const PHASES = ["Running", "Pending", "Paused", "Finished", "Failed"];

const listeners = new Set();
let phases = new Map();
// Phases of a listing that is not complete yet, beside which those of before count; `null` if there is none.
let listed = null;
// True once a listing was complete. Before, less is known than there is.
let isKnown = false;
let version = "";
let state = "connecting";
// Number of times that the stream was live again, and whether it has been lost since it was live.
let nReturns = 0;
let isLost = false;
let changed = new Map();
let timer = null;
let leaving = null;

// Reads events from now on, until `stop`.
export function start() {
  document.addEventListener("visibilitychange", turn);
  turn();
}

// Ends the stream, and forgets what it told.
export function stop() {
  document.removeEventListener("visibilitychange", turn);
  leaving?.abort();
  leaving = null;
  phases = new Map();
  listed = null;
  isKnown = false;
  version = "";
}

// Calls `listener(changes)` with the resources that have changed since the last time: for each name its phase `before` and
// `now`, which are undefined where there is none.
export function useChanges(listener) {
  const latest = useRef(listener);
  latest.current = listener;
  useEffect(() => {
    const call = changes => latest.current(changes);
    listeners.add(call);
    return () => listeners.delete(call);
  }, []);
}

// Returns the first names, by their order, of the resources in a phase, `most` at most.
export function namesIn(phase, most) {
  const names = [];
  for (const [name, its] of phases) if (its === phase) names.push(name);
  return names.sort().slice(0, most);
}

// Returns the numbers of resources by phase and their sum, which are undefined until they are known, and the state of the
// stream: connecting, live or lost.
export function useSummary() {
  const [summary, setSummary] = useState(summarise);
  useChanges(() => setSummary(summarise()));
  return summary;
}

// Returns the number of times that the stream was live again after it was lost. Other streams, which have no heartbeats, may have
// broken unseen with it.
export function useReturns() {
  const [n, setN] = useState(nReturns);
  useChanges(() => setN(nReturns));
  return n;
}

function summarise() {
  if (!isKnown) return { byPhase: {}, total: undefined, isKnown, state };
  const byPhase = Object.fromEntries(PHASES.map(phase => [phase, 0]));
  for (const phase of phases.values()) byPhase[phase] = (byPhase[phase] ?? 0) + 1;
  return { byPhase, total: phases.size, isKnown, state };
}

// A browser keeps few connections to one address open, so a page that nobody sees gives its own back.
function turn() {
  if (document.hidden) {
    leaving?.abort();
    leaving = null;
  } else if (!leaving) {
    leaving = new AbortController();
    follow(leaving.signal);
  }
}

async function follow(signal) {
  let wait = WAIT_FIRST;
  while (!signal.aborted) {
    setState("connecting");
    try {
      // A stream that breaks before it is complete may do so again and again: the waits become longer.
      await readWhileAlive(signal, () => (wait = WAIT_FIRST));
      setState("lost");
    } catch (fault) {
      if (signal.aborted) return;
      setState("lost");
      // The page asks for a token meanwhile, and begins anew with it. An id that means nothing any more is forgotten.
      if (fault.status === 401) return;
      if (fault.status === 400) version = "";
    }
    await new Promise(done => setTimeout(done, wait * (0.5 + Math.random() / 2)));
    wait = Math.min(wait * 2, WAIT_MOST);
  }
}

// Reads the stream to its end, or until it is silent for too long.
async function readWhileAlive(signal, onComplete) {
  const silent = new AbortController();
  let silence;
  const onLine = () => {
    clearTimeout(silence);
    silence = setTimeout(() => silent.abort(), SILENCE);
  };
  onLine();
  try {
    await read(AbortSignal.any([signal, silent.signal]), onLine, onComplete);
  } finally {
    clearTimeout(silence);
  }
}

async function read(signal, onLine, onComplete) {
  // A listing that broke off is of no use, and it is sent again from its beginning: the version that came with its `begin` is
  // that of a reader who knows nothing.
  listed = null;
  const headers = version ? { "last-event-id": version } : {};
  let [name, id, data] = ["", "", ""];
  for await (const line of lines("crawler/events", { headers, signal, isEndless: true })) {
    // Lines that have come already are those of a reader who has left.
    signal.throwIfAborted();
    onLine();
    if (line.startsWith("event: ")) name = line.slice(7);
    else if (line.startsWith("id: ")) id = line.slice(4);
    else if (line.startsWith("data: ")) data = line.slice(6);
    else if (line === "" && name) {
      if (name === "end") return;
      if (name === "complete") {
        onComplete();
        setState("live");
      }
      take(name, data ? JSON.parse(data) : {});
      if (id) version = id;
      [name, id, data] = ["", "", ""];
    }
  }
}

function take(event, { name, resource }) {
  if (event === "begin") listed = new Map();
  else if (event === "added" && listed) listed.set(name, resource.phase);
  else if (event === "added" || event === "changed") put(name, resource.phase);
  else if (event === "deleted") put(name, undefined);
  else if (event === "complete") finish();
}

// Has a listing take the place of what was known before.
function finish() {
  if (listed) {
    const gone = [...phases.keys()].filter(name => !listed.has(name));
    for (const name of gone) put(name, undefined);
    for (const [name, phase] of listed) put(name, phase);
  }
  listed = null;
  isKnown = true;
  tell();
}

// Notes the phase of a resource; undefined: the resource is not there any more.
function put(name, now) {
  const before = changed.has(name) ? changed.get(name).before : phases.get(name);
  if (now === undefined) phases.delete(name);
  else phases.set(name, now);
  changed.set(name, { before, now });
  tell();
}

function setState(next) {
  if (state === next) return;
  state = next;
  if (next === "lost") isLost = true;
  if (next === "live" && isLost) {
    isLost = false;
    nReturns += 1;
  }
  tell();
}

function tell() {
  timer ??= setTimeout(() => {
    timer = null;
    const changes = changed;
    changed = new Map();
    for (const listener of listeners) listener(changes);
  }, TELL_EVERY);
}
