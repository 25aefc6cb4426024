// Calls of the master, made as the reader of the page: with their access token, if they have given one.
//
// Every call has a deadline, except for streams that go on until their reader leaves. An answer that is no success
// is thrown as a `Problem`, which has the words of the master.

const TOKEN = "crawler-token";

// Milliseconds. A master gives a call 30 s.
const DEADLINE = 35_000;

// Called when the master asks for a token, or refuses the one that it was shown.
let refused = () => {};

export class Problem extends Error {
  constructor(status, detail, hint) {
    super(detail);
    this.status = status;
    this.hint = hint;
  }
}

export const hasToken = () => sessionStorage.getItem(TOKEN) !== null;
export const keepToken = token => sessionStorage.setItem(TOKEN, token);
export const dropToken = () => sessionStorage.removeItem(TOKEN);

export function onRefused(listener) {
  refused = listener;
}

// Path of a resource, or of what belongs to it.
export const ofResource = (name, ...rest) => ["crawler/resource", encodeURIComponent(name), ...rest].join("/");

// Returns the JSON of an answer.
export async function get(path, query, signal) {
  const answer = await ask("GET", path, { query, signal: within(signal) });
  return answer.json();
}

// Makes a call that changes something. It is carried out once, even if the browser sends it again.
export async function change(method, path, body = {}, query = {}) {
  const headers = { "content-type": "application/json", "idempotency-key": key() };
  const answer = await ask(method, path, { query, headers, body: JSON.stringify(body), signal: within() });
  return answer.json();
}

// Yields the lines of an answer as they come. Without `isEndless`, all have to come within the deadline.
export async function* lines(path, { query, headers, signal, isEndless } = {}) {
  const answer = await ask("GET", path, { query, headers, signal: isEndless ? signal : within(signal) });
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
    throw new Problem(0, "the answer broke off before its end", "load it again");
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
    throw new Problem(0, detail, "the page tries again; see that the process runs");
  }
  if (answer.ok) return answer;
  const problem = await told(answer);
  // A late answer to a token of before says nothing about the present one.
  if (answer.status === 401 && sessionStorage.getItem(TOKEN) === token) refused(problem);
  throw problem;
}

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
function key() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, byte => byte.toString(16).padStart(2, "0")).join("");
}
