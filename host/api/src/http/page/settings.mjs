// Settings of a resource as texts that a reader can change, and back. It needs no browser, so that Node.js can test it.
//
// A row of the table that the master serves tells where a setting stands in the spec, its form, and when a change holds.

import { duration, milliseconds } from "./times.mjs";

const UNITS = [["TiB", 2 ** 40], ["GiB", 2 ** 30], ["MiB", 2 ** 20], ["KiB", 2 ** 10], ["B", 1]];
const BYTES = /^(\d+)\s*(TiB|GiB|MiB|KiB|B)?$/;

// Name of a row among all.
export const keyOf = ({ part, field }) => (part ? `${part}.${field}` : field);

// Returns the value of a row in a spec, `undefined` if none is set. Of placement, a master also tells defaults.
export function valueIn(spec, { part, field, form, default: preset }) {
  const value = (part ? spec[part] : spec)?.[field];
  const isNone = value === undefined || value === null || value === "" || (form === "pairs" && !Object.keys(value).length)
    || (part === "placement" && String(value) === preset);
  return isNone ? undefined : value;
}

// Returns the text of the value that a row has in a spec: empty if none is set. It is `null` for a value that would be another one
// as the text of a form.
export function textIn(spec, row) {
  const value = valueIn(spec, row);
  if (value === undefined) return "";
  switch (row.form) {
    case "number": return isExact(value) ? String(value) : null;
    case "bytes": return isExact(value) ? bytes(Number(value)) : null;
    case "time": return isExact(value) ? duration(value) : null;
    case "texts": return lines(value);
    case "pairs": return Object.keys(value).some(key => key.includes("=")) ? null
      : lines(Object.entries(value).map(([key, one]) => `${key}=${one}`));
    default: return value.includes("\n") || value.trim() !== value ? null : value;
  }
}

// Numbers of the master have 64 bits, those of a script 53.
const isExact = value => Number.isSafeInteger(Number(value));

const lines = texts => (texts.some(text => text.includes("\n") || text.trim() !== text || !text) ? null : texts.join("\n"));

function bytes(n) {
  const [unit, length] = UNITS.find(([, length]) => n > 0 && n % length === 0) ?? ["B", 1];
  return `${n / length}${unit === "B" ? "" : unit}`;
}

// Returns the value of a text, `undefined` for an empty one. It throws an error about a text that is none of the row's form.
export function valueOf(row, text) {
  const given = text.trim();
  if (!given) return undefined;
  switch (row.form) {
    case "number": return wholeNumber(row, given, /^\d+$/.test(given) ? Number(given) : NaN);
    case "bytes": {
      const [, n, unit = "B"] = BYTES.exec(given) ?? [];
      if (n === undefined) throw new Error(`${row.name} is a number of bytes, such as 4096, 64MiB or 10GiB, and not ${given}`);
      return wholeNumber(row, given, Number(n) * new Map(UNITS).get(unit));
    }
    case "time": return wholeNumber(row, given, milliseconds(given, row.name));
    case "texts": return given.split("\n").map(line => line.trim()).filter(Boolean);
    case "pairs": return Object.fromEntries(given.split("\n").map(line => line.trim()).filter(Boolean).map(line => {
      const at = line.indexOf("=");
      if (at < 1) throw new Error(`${row.name} has a NAME=VALUE on each line, and not ${line}`);
      return [line.slice(0, at).trim(), line.slice(at + 1).trim()];
    }));
    default: return given;
  }
}

function wholeNumber({ name }, text, n) {
  if (!Number.isSafeInteger(n)) throw new Error(`${name} is a whole number that is not too large, and not ${text}`);
  return n;
}

// Returns the rows whose texts are not those of the spec, as `{row, before, after}` with texts that are empty where the default holds.
// It throws an error about a text that is none of its row's form.
export function changesOf(spec, rows, texts) {
  return rows.flatMap(row => {
    const [before, given] = [textIn(spec, row), texts[keyOf(row)]];
    if (before === null || given === undefined) return [];
    // Another way to write the same value is no change.
    const after = textIn(withValue({}, row, valueOf(row, given)), row) ?? given.trim();
    return after === before ? [] : [{ row, before, after }];
  });
}

// True if only a restart can make these changes.
export const needsRestart = changes => changes.some(({ row, before, after }) => row.restarts || (row.field === "plugin" && isOther(before, after)));

const isOther = (before, after) => before.split("@")[0] !== after.split("@")[0];

// Time at which a change holds, in words.
export const appliesWhen = ({ row, before, after }) => (row.field === "plugin" && isOther(before, after) ? "with a new run" : row.applies);

// Returns the spec with the changes, as a body that takes the place of the whole spec. It throws an error if that would change
// something else.
export function changed(spec, changes) {
  const { plugin, params, limits, crawl, placement, labels } = spec;
  const kept = { plugin, params, limits, crawl, placement, labels };
  const inexact = numbers(kept).find(n => !Number.isSafeInteger(n));
  if (inexact !== undefined) throw new Error(`the number ${inexact} is too large to be kept by a browser; change the resource with the command`);
  return changes.reduce((whole, { row, after }) => withValue(whole, row, valueOf(row, after)), kept);
}

function numbers(value) {
  if (typeof value === "number") return [value];
  return value && typeof value === "object" ? Object.values(value).flatMap(numbers) : [];
}

// Returns the spec with another value of a row; without it if the value is `undefined`.
function withValue(spec, { part, field }, value) {
  const set = holder => {
    const { [field]: _, ...others } = holder ?? {};
    return value === undefined ? others : { ...others, [field]: value };
  };
  return part ? { ...spec, [part]: set(spec[part]) } : set(spec);
}
