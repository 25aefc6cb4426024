// The schedule of one resource: when its runs begin by themselves, a form that sets it, and the runs so far.

import { html } from "../html.js";
import { useState } from "../vendor/hooks.mjs";
import { removeSchedule, setSchedule } from "../actions.js";
import { get, ofResource } from "../api.js";
import { NONE, time } from "../format.js";
import { Choice, Fault, Figures, Status } from "../parts.js";
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

export function Schedule({ resource: { spec: { name, crawl }, paused }, query }) {
  const load = usePoll(signal => scheduleOf(name, signal), [name], PERIOD);
  const { schedule, fault } = load.value ?? {};
  return html`<h2>Schedule</h2>
    <${Status} load=${load} isEmpty=${schedule === null} empty="The resource has no schedule: a run begins only when it is asked for." />
    <${Fault} fault=${fault} />
    ${schedule ? html`<${Present} schedule=${schedule} />` : null}
    ${paused && (schedule || fault) ? html`<p>While the resource is paused, its due times start nothing.
      <${PauseOrResume} name=${name} paused=${true} again=${load.again} /></p>` : null}
    ${load.value ? html`<${Setting} name=${name} schedule=${schedule} again=${load.again} />` : null}
    <h2>Runs</h2><${Runs} name=${name} hasChanges=${Number(crawl?.changes ?? 0) > 0} query=${query} />`;
}

// Returns the schedule, `null` if there is none; or the fault of one that this master cannot read, which can be replaced and removed.
async function scheduleOf(name, signal) {
  try {
    return { schedule: await get(ofResource(name, "schedule"), {}, signal) };
  } catch (fault) {
    if (fault.status === 404) return { schedule: null };
    if (fault.status === 412) return { fault };
    throw fault;
  }
}

function Present({ schedule }) {
  const { spec, due_at, starts_at } = schedule;
  const there = spec.tz && Number(due_at) ? time(due_at, spec.tz) : undefined;
  return html`<${Figures} figures=${[
      ["Runs begin", html`<code>${timesOf(spec)}</code>`],
      ["Time zone", zoneOf(spec)],
      ["Next due time", Number(due_at) ? time(due_at) : "never"],
      ...(there ? [[`Due in ${spec.tz}`, there]] : []),
      ["Its run begins", schedule.waits ? "when the present run is over" : time(starts_at)],
      ["Jitter", Number(spec.jitter_ms) ? `up to ${duration(spec.jitter_ms)}` : "none"],
      ["Overlap", spec.overlap],
      ["Missed", spec.missed],
      ["Last due time", lastDue(schedule)],
    ]} />`;
}

const textOf = schedule => JSON.stringify(schedule?.spec ?? null);

// The form that sets the schedule. What a reader types stays there: it is filled anew only when they ask for it.
function Setting({ name, schedule, again }) {
  // `spec` is what the form was filled with. `seen` has the texts of that, or of the last two schedules if the reader has changed it: a look
  // that was on its way may still tell the one before.
  const [{ nFilled, spec, seen }, setFilled] = useState({ nFilled: 0, spec: schedule?.spec, seen: [textOf(schedule)] });
  const fill = () => setFilled({ nFilled: nFilled + 1, spec: schedule?.spec, seen: [textOf(schedule)] });
  const onChange = changed => {
    setFilled(now => ({ ...now, seen: [now.seen.at(-1), textOf(changed)] }));
    again();
  };
  const isOther = !seen.includes(textOf(schedule));
  return html`${isOther ? html`<p role="status">The schedule was changed meanwhile.
      <button type="button" onClick=${fill}>Load it into the form</button></p>` : null}
    <${Form} key=${nFilled} name=${name} spec=${spec} isThere=${schedule !== null} onChange=${onChange} />`;
}

function Form({ name, spec, isThere, onChange }) {
  const [way, setWay] = useState(isByInterval(spec) ? "every" : "cron");
  const [overlap, setOverlap] = useState(spec?.overlap || "skip");
  const [missed, setMissed] = useState(spec?.missed || "once");
  const [isBusy, setBusy] = useState(false);
  const submit = async event => {
    event.preventDefault();
    const { elements } = event.currentTarget;
    setBusy(true);
    const schedule = await setSchedule(name, () => ({ ...written(elements), overlap, missed }));
    setBusy(false);
    if (schedule) onChange(schedule);
  };
  const remove = async () => {
    if (await removeSchedule(name)) onChange(null);
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
    <button class="main" disabled=${isBusy}>${isThere ? "Replace the schedule" : "Set the schedule"}</button>
    ${isThere ? html`<button type="button" class="grave" onClick=${remove}>Remove the schedule</button>` : null}
  </form>`;
}

// Times and jitter as they were written. It throws an error about a span of time that is none.
function written({ cron, tz, every, jitter }) {
  const jitter_ms = jitter.value.trim() ? milliseconds(jitter.value, "a jitter") : 0;
  if (!every) return { cron: cron.value.trim(), tz: tz.value.trim(), jitter_ms };
  const every_ms = milliseconds(every.value, "an interval");
  // To the master, 0 says that there is none.
  if (every_ms === 0) throw new Error("an interval is longer than 0s");
  return { every_ms, jitter_ms };
}
