// What a reader can do to resources. The master decides who may; a refusal is shown in its words.

import { useEffect, useState } from "./vendor/hooks.mjs";
import { change, get, ofResource, present } from "./api.js";
import { attempt, confirm } from "./dialog.js";

// Resources of one page of a list that is walked, and calls at once.
const PAGE_SIZE = 1_000;
const AT_ONCE = 8;
// Milliseconds before a change of one of many is tried again, each time.
const WAITS = [1_000, 3_000, 8_000];

// How far an action on many resources is, as a text; `null` if there is none. Only one goes on at a time.
let bulk = null;
const watchers = new Set();

// Returns how far an action on many resources is.
export function useBulk() {
  const [text, setText] = useState(bulk);
  useEffect(() => {
    setText(bulk);
    watchers.add(setText);
    return () => watchers.delete(setText);
  }, []);
  return text;
}

function tell(text) {
  bulk = text;
  for (const watcher of watchers) watcher(text);
}

// Does something to many resources, unless something else is being done to many, and returns what comes of it. It ends when its
// reader logs out.
async function alone(text, work) {
  if (bulk !== null) return undefined;
  tell(text);
  try {
    return await work(present());
  } finally {
    tell(null);
  }
}

export const pause = name => attempt(`Pause ${name}`, () => change("POST", ofResource(name, "pause")));
export const resume = name => attempt(`Resume ${name}`, () => change("POST", ofResource(name, "resume")));

// Restarts the resource that was seen, and not one that was added under its name meanwhile.
export async function restart({ name, id }) {
  const question = {
    title: `Restart ${name}?`,
    text: "A new run begins, and the present one ends. Items of earlier runs stay.",
    verb: "Restart",
  };
  const ask = () => change("POST", ofResource(name, "restart"), { if_id: id });
  return (await confirm(question)) && attempt(`Restart ${name}`, ask);
}

// Changes the settings of the resource that was seen to those that `written()` returns, which may throw; with a restart also by beginning a
// new run. Somebody else's change in the meantime is not undone: the master refuses this one then. Returns true if it was done.
export function changeSettings({ spec: { name, id }, generation }, written, isRestart) {
  const [method, path, what] = isRestart ? ["POST", ofResource(name, "restart"), `Change and restart ${name}`]
    : ["PATCH", ofResource(name), `Change the settings of ${name}`];
  return attempt(what, () => change(method, path, { ...written(), replace: true, if_id: id, if_generation: generation }));
}

// Deletes the resource that was seen, and not one that was added under its name meanwhile.
export async function remove({ name, id }) {
  const question = {
    title: `Delete ${name}?`,
    text: "The resource and its frontier go, and cannot be brought back. Its items stay unless you delete them too.",
    option: "Delete its items and kept files too",
    verb: "Delete",
    isGrave: true,
  };
  const answer = await confirm(question);
  const body = { if_id: id, purge: answer?.isChosen };
  return answer && attempt(`Delete ${name}`, () => change("DELETE", ofResource(name), body));
}

// Sets the schedule that `written()` returns; it may throw. Returns the schedule, or `null` if it was not set.
export async function setSchedule(name, written) {
  let schedule = null;
  await attempt(`Set the schedule of ${name}`, async () => {
    schedule = await change("PUT", ofResource(name, "schedule"), written());
  });
  return schedule;
}

export async function removeSchedule(name) {
  const question = {
    title: `Remove the schedule of ${name}?`,
    text: "The present run goes on. After it, a run begins only when it is asked for.",
    verb: "Remove",
    isGrave: true,
  };
  return (await confirm(question)) && attempt(question.title.slice(0, -1), () => change("DELETE", ofResource(name, "schedule")));
}

// Pauses or resumes all resources that pass the filters, after their number was shown.
export const changeAll = (verb, filters) => alone(`Looking for resources to ${verb}…`, async reader => {
  let names = [];
  const find = async () => {
    names = await matching(verb, filters, reader);
    if (!names.length) throw new Error(`none that pass the filters can be ${verb}d`);
  };
  if (!(await attempt(`Find resources to ${verb}`, find, true, reader))) return;
  const question = { title: `${capital(verb)} ${resources(names.length)}?`, text: shown(names), verb: capital(verb) };
  if (await confirm(question, reader)) await changeNow(verb, names, reader);
});

// Pauses or resumes these resources, and tells which of them could not be. Returns the names of the others.
export const changeEach = async (verb, names) =>
  (await alone(`${capital(verb)}…`, reader => changeNow(verb, names, reader))) ?? [];

async function changeNow(verb, names, reader) {
  const what = `${capital(verb)} ${resources(names.length)}`;
  const rest = [...names];
  const [done, faults] = [[], []];
  const left = new Promise(leave => reader.addEventListener("abort", leave, { once: true }));
  const worker = async () => {
    for (let name = rest.shift(); name !== undefined && !reader.aborted; name = rest.shift()) {
      const work = changePatiently(ofResource(name, verb), reader, left);
      await work.then(() => done.push(name), fault => faults.push(`${name}: ${fault.message}`));
      tell(`${what}: ${done.length} done${faults.length ? `, ${faults.length} not` : ""}`);
    }
  };
  await attempt(what, async () => {
    await Promise.all(Array.from({ length: AT_ONCE }, worker));
    if (faults.length) throw new Error(`${faults.length} of them not: ${shown(faults)}`);
  }, false, reader);
  return done;
}

// Makes a change, and the same one again if what stands in its way may pass, unless its reader has `left` meanwhile.
async function changePatiently(path, reader, left) {
  for (const wait of WAITS) {
    try {
      return await change("POST", path, {}, {}, reader);
    } catch (fault) {
      if (!fault.mayPass) throw fault;
      const over = new Promise(done => setTimeout(done, wait * (0.5 + Math.random() / 2)));
      await Promise.race([over, left]);
      reader.throwIfAborted();
    }
  }
  return change("POST", path, {}, {}, reader);
}

const capital = verb => (verb === "pause" ? "Pause" : "Resume");
const resources = n => (n === 1 ? "1 resource" : `${n} resources`);

// Names of the resources that pass the filters and that the verb would change.
async function matching(verb, filters, reader) {
  const phases = verb === "pause" ? ["running", "pending"] : ["paused"];
  const wanted = phases.filter(phase => !filters.phase || filters.phase === phase);
  const names = [];
  for (const phase of wanted) {
    let page_token = "";
    do {
      const page = await get("crawler/resource", { ...filters, phase, page_size: PAGE_SIZE, page_token }, reader);
      names.push(...page.resources.map(resource => resource.spec.name));
      page_token = page.next_page_token;
    } while (page_token);
  }
  return names;
}

function shown(texts) {
  const [first, rest] = [texts.slice(0, 5).join(", "), texts.length - 5];
  return rest > 0 ? `${first} and ${rest} more` : first;
}
