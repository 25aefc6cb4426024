// Calls of the master, made as the reader of the page: with their access token, if they have given one.
//
// Every call has a deadline, except for streams that go on until their reader leaves. An answer that is no success
// is thrown as a `Problem`, which has the words of the master.

const TOKEN = "crawler-token";

// Milliseconds. A master gives a call 30 s.
const DEADLINE = 35_000;

// States of what may pass: no whole answer, too many calls, and a master that has no leader at the moment.
const PASSING = [0, 429, 503];

// Changes of which nobody knows whether they were carried out, the oldest first: `{key, place, at}` by what was asked. One that
// is asked for again in time has the same key, so that it is not carried out twice.
const unsure = new Map();
const UNSURE_MAX = 1_000;
// Milliseconds. What is asked for later is a new wish.
const UNSURE_FOR = 60_000;

// Goes on for as long as the same reader is there.
let session = new AbortController();

// Called when the master asks for a token, or refuses the one that it was shown.
let refused = () => {};

export class Problem extends Error {
  constructor(status, detail, hint) {
    super(detail);
    this.status = status;
    this.hint = hint;
  }

  // True if the same call may be answered a while later.
  get mayPass() {
    return PASSING.includes(this.status);
  }

  // Returns the problem as it is told by those who make the call again by themselves.
  triedAgain() {
    return new Problem(this.status, this.message, ["the page tries again", this.hint].filter(Boolean).join("; "));
  }
}

export const hasToken = () => sessionStorage.getItem(TOKEN) !== null;
export const keepToken = token => sessionStorage.setItem(TOKEN, token);

// Signal that is aborted once the present reader leaves. What takes several calls asks for it at its start, so that it does not
// go on with the token of the next reader.
export const present = () => session.signal;

export function dropToken() {
  sessionStorage.removeItem(TOKEN);
  unsure.clear();
  session.abort();
  session = new AbortController();
}

export function onRefused(listener) {
  refused = listener;
}

// Path of a resource, or of what belongs to it.
export const ofResource = (name, ...rest) => ["crawler/resource", encodeURIComponent(name), ...rest].join("/");

// Returns the JSON of an answer.
export async function get(path, query, signal) {
  const answer = await ask("GET", path, { query, signal: within(signal) });
  return whole(answer, "GET", signal);
}

// Returns the text of an answer, for those who show JSON as it was written.
export async function getText(path, query, signal) {
  const answer = await ask("GET", path, { query, signal: within(signal) });
  return whole(answer, "GET", signal, "text");
}

// Makes a call that changes something. It is carried out once, even if the browser sends it again, or the reader asks for the
// same again because no answer came. Nobody waits for its answer any more once `reader` is aborted.
export async function change(method, path, body = {}, query = {}, reader = present()) {
  const text = JSON.stringify(body);
  const asked = JSON.stringify([method, path, query, text]);
  const place = placeOf(path, body);
  const before = unsure.get(asked);
  const key = before && performance.now() - before.at < UNSURE_FOR ? before.key : newKey();
  const headers = { "content-type": "application/json", "idempotency-key": key };
  try {
    const answer = await ask(method, path, { query, headers, body: text, signal: within(reader) });
    const told = await whole(answer, method, reader);
    // What is asked for after another change of the same thing is a new wish.
    for (const [other, one] of unsure) if (one.place === place) unsure.delete(other);
    return told;
  } catch (fault) {
    unsure.delete(asked);
    const isUnsure = !(fault instanceof Problem) || fault.status === 0 || fault.status >= 500;
    // The next reader begins without keys.
    if (isUnsure && !reader.aborted) unsure.set(asked, { key, place, at: performance.now() });
    if (unsure.size > UNSURE_MAX) unsure.delete(unsure.keys().next().value);
    throw fault;
  }
}

// What a change is about: one resource or one node.
function placeOf(path, { name }) {
  const whole = path === "crawler/resource" && name ? ofResource(name) : path;
  return whole.split("/").slice(0, 3).join("/");
}

// Yields the lines of an answer as they come, after a call of `onOpen`. Without `isEndless`, all have to come within the
// deadline.
export async function* lines(path, { query, headers, signal, isEndless, onOpen } = {}) {
  const answer = await ask("GET", path, { query, headers, signal: isEndless ? signal : within(signal) });
  onOpen?.();
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) break;
      const parts = value.split("\n");
      parts[0] = rest + parts[0];
      rest = parts.pop();
      yield* parts;
    }
  } catch (error) {
    if (signal?.aborted) throw error;
    throw brokenOff("GET");
  } finally {
    // A reader who has enough leaves the stream. One that is broken has nothing left to cancel.
    reader.cancel().catch(() => {});
  }
  if (rest) yield rest;
}

async function ask(method, path, { query = {}, headers = {}, body, signal }) {
  const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== "");
  const tail = given.length ? "?" + new URLSearchParams(given) : "";
  const token = sessionStorage.getItem(TOKEN);
  const shown = token === null ? {} : { authorization: "Bearer " + token };
  let answer;
  try {
    answer = await fetch(path + tail, { method, headers: { ...headers, ...shown }, body, signal, cache: "no-store" });
  } catch (error) {
    if (signal?.aborted && signal.reason?.name !== "TimeoutError") throw error;
    const detail = signal?.aborted ? "the master did not answer in time" : "the master does not answer";
    throw new Problem(0, detail, wayOut(method));
  }
  if (answer.ok) return answer;
  const problem = await told(answer);
  // A late answer to a token of before says nothing about the present one.
  if (answer.status === 401 && sessionStorage.getItem(TOKEN) === token) refused(problem);
  throw problem;
}

// Returns the JSON of an answer, or its text, unless it breaks off or `signal` says that nobody waits for it any more.
async function whole(answer, method, signal, form = "json") {
  try {
    return await answer[form]();
  } catch (error) {
    if (signal?.aborted) throw error;
    throw brokenOff(method);
  }
}

const brokenOff = method => new Problem(0, "the answer broke off before its end", wayOut(method));

// What a reader can do about a call that got no whole answer.
const wayOut = method => `see that the process runs${method === "GET" ? "" : ", and ask for it again"}`;

async function told(answer) {
  try {
    const { detail, hint } = await answer.json();
    return new Problem(answer.status, String(detail), String(hint ?? ""));
  } catch {
    // Something between the page and the master has answered.
    return new Problem(answer.status, `the answer is ${answer.status} ${answer.statusText}`, "");
  }
}

function within(signal) {
  const deadline = AbortSignal.timeout(DEADLINE);
  return signal ? AbortSignal.any([signal, deadline]) : deadline;
}

// `crypto.randomUUID` is missing where a page came without TLS.
function newKey() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, byte => byte.toString(16).padStart(2, "0")).join("");
}
