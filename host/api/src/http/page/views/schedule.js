// The schedule of one resource: when its runs begin by themselves, a form that sets it, and the runs so far.

import { html } from "../html.js";
import { useState } from "../vendor/hooks.mjs";
import { removeSchedule, setSchedule } from "../actions.js";
import { get, ofResource } from "../api.js";
import { NONE, time } from "../format.js";
import { Choice, Figures, Status } from "../parts.js";
import { usePoll } from "../poll.js";
import { duration, milliseconds } from "../times.mjs";
import { PauseOrResume } from "./resources.js";
import { Runs } from "./runs.js";

// Milliseconds between two looks.
const PERIOD = 5_000;

const WAYS = [["cron", "at times of the day"], ["every", "at intervals"]];
const OVERLAPS = [["skip", "skip: start nothing"], ["queue", "queue: begin when it is over"], ["restart", "restart: end it"]];
const MISSES = [["once", "once: one run for all of them"], ["skip", "skip: none"]];

// Names that a browser knows, if it tells any. Others can be typed: the master decides.
const ZONES = Intl.supportedValuesOf?.("timeZone") ?? [];

const isByInterval = spec => Number(spec?.every_ms ?? 0) > 0;

// Times at which runs begin, as their user wrote them.
export const timesOf = spec => (isByInterval(spec) ? `every ${duration(spec.every_ms)}` : spec.cron);

export const zoneOf = spec => (isByInterval(spec) ? NONE : spec.tz || "UTC");

export function nextRun({ due_at, starts_at, waits }) {
  if (!Number(due_at)) return "never";
  return waits ? `when the present run is over; it was due at ${time(due_at)}` : time(starts_at);
}

// What became of the last due time, in words.
export function lastDue({ last }) {
  if (!last) return "none yet";
  const due = time(last.due_at);
  switch (last.outcome) {
    case "started": return `${due}, started run ${last.run}`;
    case "skipped": return `${due}, started nothing: the run before was not over`;
    case "paused": return `${due}, started nothing: the resource was paused`;
    case "missed": return `${due}, missed: noticed at ${time(last.at)}`;
    case "failed": return `${due}, failed: ${last.reason}`;
    default: return `${due}, ${last.outcome}`;
  }
}

// Phase of a resource with a schedule. That of a run that is over does not tell that the resource is paused, but the last due time
// does.
export function phaseOf(phase, { last }) {
  const isOver = phase === "Finished" || phase === "Failed";
  return isOver && last?.outcome === "paused" ? "Paused" : phase;
}

export function Schedule({ resource: { spec: { name, crawl }, phase } }) {
  const load = usePoll(signal => scheduleOf(name, signal), [name], PERIOD);
  const schedule = load.value;
  return html`<h2>Schedule</h2>
    <${Status} load=${load} isEmpty=${schedule === null} empty="The resource has no schedule: a run begins only when it is asked for." />
    ${schedule ? html`<${Present} name=${name} phase=${phase} schedule=${schedule} again=${load.again} />` : null}
    ${schedule === undefined ? null : html`<${Form} key=${JSON.stringify(schedule?.spec)} name=${name} schedule=${schedule} again=${load.again} />`}
    <h2>Runs</h2><${Runs} name=${name} hasChanges=${Number(crawl?.changes ?? 0) > 0} />`;
}

// Returns the schedule, or `null` if there is none.
async function scheduleOf(name, signal) {
  try {
    return await get(ofResource(name, "schedule"), {}, signal);
  } catch (fault) {
    if (fault.status !== 404) throw fault;
    return null;
  }
}

function Present({ name, phase, schedule, again }) {
  const { spec, due_at, starts_at } = schedule;
  const isPaused = phaseOf(phase, schedule) === "Paused";
  const there = spec.tz && Number(due_at) ? [[`Due in ${spec.tz}`, time(due_at, spec.tz)]] : [];
  return html`<${Figures} figures=${[
      ["Runs begin", html`<code>${timesOf(spec)}</code>`],
      ["Time zone", zoneOf(spec)],
      ["Next due time", Number(due_at) ? time(due_at) : "never"],
      ...there,
      ["Its run begins", schedule.waits ? "when the present run is over" : time(starts_at)],
      ["Jitter", Number(spec.jitter_ms) ? `up to ${duration(spec.jitter_ms)}` : "none"],
      ["Overlap", spec.overlap],
      ["Missed", spec.missed],
      ["Last due time", lastDue(schedule)],
    ]} />
    ${isPaused ? html`<p>While the resource is paused, its due times start nothing.
      <${PauseOrResume} name=${name} phase="Paused" again=${again} /></p>` : null}`;
}

function Form({ name, schedule, again }) {
  const spec = schedule?.spec;
  const [way, setWay] = useState(isByInterval(spec) ? "every" : "cron");
  const [overlap, setOverlap] = useState(spec?.overlap || "skip");
  const [missed, setMissed] = useState(spec?.missed || "once");
  const [isBusy, setBusy] = useState(false);
  const submit = async event => {
    event.preventDefault();
    const { elements } = event.currentTarget;
    setBusy(true);
    await setSchedule(name, () => ({ ...written(elements), overlap, missed }));
    setBusy(false);
    again();
  };
  const remove = async () => {
    if (await removeSchedule(name)) again();
  };
  const span = ms => (Number(ms ?? 0) ? duration(ms) : "");
  return html`<form class="filters" onSubmit=${submit} aria-label="Schedule">
    <${Choice} label="Begin runs" value=${way} options=${WAYS} onChange=${setWay} />
    ${way === "every"
      ? html`<label key="every">Interval <input name="every" required maxlength="64" autocomplete="off" placeholder="6h"
          defaultValue=${span(spec?.every_ms)} /></label>`
      : html`<label key="cron">Minute, hour, day, month, weekday <input name="cron" required maxlength="512" autocomplete="off"
            placeholder="0 3 * * *" defaultValue=${spec?.cron ?? ""} /></label>
          <label key="tz">Time zone <input name="tz" list="zones" maxlength="64" autocomplete="off" placeholder="UTC"
            defaultValue=${spec?.tz ?? ""} /></label>`}
    <label>Later by up to <input name="jitter" maxlength="64" autocomplete="off" placeholder="0s" defaultValue=${span(spec?.jitter_ms)} /></label>
    <${Choice} label="While a run goes on" value=${overlap} options=${OVERLAPS} onChange=${setOverlap} />
    <${Choice} label="Due times noticed late" value=${missed} options=${MISSES} onChange=${setMissed} />
    <datalist id="zones">${ZONES.map(zone => html`<option value=${zone}></option>`)}</datalist>
    <button class="main" disabled=${isBusy}>${schedule ? "Replace the schedule" : "Set the schedule"}</button>
    ${schedule ? html`<button type="button" class="grave" onClick=${remove}>Remove the schedule</button>` : null}
  </form>`;
}

// Times and jitter as they were written. It throws an error about a span of time that is none.
function written({ cron, tz, every, jitter }) {
  const times = every
    ? { every_ms: milliseconds(every.value, "an interval") }
    : { cron: cron.value.trim(), tz: tz.value.trim() };
  return { ...times, jitter_ms: jitter.value.trim() ? milliseconds(jitter.value, "a jitter") : 0 };
}
