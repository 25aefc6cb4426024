// Numbers, times and addresses as texts for readers.

import { duration } from "./times.mjs";

const COUNT = new Intl.NumberFormat("en");
const SHORT = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });

export const NONE = "–";

export const count = n => COUNT.format(n ?? 0);
export const short = n => SHORT.format(n ?? 0);

// A number that is undefined or `null` while it is not known.
export const known = (n, as = count) => (n === undefined || n === null ? NONE : as(n));

// A rate in pieces per second; `null` while it is not known.
export function rate(perSecond) {
  if (perSecond === null || perSecond === undefined) return NONE;
  return perSecond >= 100 ? count(Math.round(perSecond)) : perSecond.toFixed(1);
}

// A part of a whole in percent, or a dash if there is no whole. Only what is complete is 100 %, and only nothing is 0 %.
export function share(n, whole) {
  if (!whole) return NONE;
  const percent = (n / whole) * 100;
  if (n > 0 && percent < 0.1) return "< 0.1 %";
  return `${percent >= 99.95 && n < whole ? "> 99.9" : percent.toFixed(percent < 10 && n > 0 ? 1 : 0)} %`;
}

export function bytes(n) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  for (; n >= 1024 && unit < units.length - 1; unit += 1) n /= 1024;
  return `${unit ? n.toFixed(1) : n} ${units[unit]}`;
}

// A point in time, in milliseconds since 1970, in the time zone of the reader or in `zone`; 0 stands for never. It is undefined in a zone that
// the browser does not know.
export function time(at, zone) {
  if (!Number(at)) return NONE;
  try {
    return new Date(Number(at)).toLocaleString(undefined, { timeZone: zone });
  } catch {
    return undefined;
  }
}

// A span of time, in milliseconds.
export function span(ms) {
  const seconds = Math.max(0, Math.round(ms / 1000));
  const parts = [[86_400, "d"], [3_600, "h"], [60, "min"]];
  for (const [length, unit] of parts) {
    if (seconds >= length) return `${Math.floor(seconds / length)} ${unit}`;
  }
  return `${seconds} s`;
}

// Returns the length of a run. Seconds are enough for what takes minutes or hours.
export function took({ started_at, ended_at }) {
  if (!Number(started_at) || !Number(ended_at)) return NONE;
  return duration(Math.max(0, Math.round((ended_at - started_at) / 1_000)) * 1_000);
}

// Returns the address if a reader may be led there: scripts and data are no places.
export function webAddress(text) {
  try {
    const url = new URL(text);
    return ["http:", "https:"].includes(url.protocol) ? url.href : null;
  } catch {
    return null;
  }
}
