// Spans of time as texts that a reader can write as well. It needs no browser, so that Node.js can test it.

const UNITS = [["d", 86_400_000], ["h", 3_600_000], ["m", 60_000], ["s", 1_000], ["ms", 1]];
const LENGTHS = new Map(UNITS);

const WHOLE = /^(?:\d+\s*(?:ms|[dhms])\s*)+$/;
const PIECE = /(\d+)\s*(ms|[dhms])/g;

// Returns the text of a span of time in milliseconds, such as `1d 6h`. No time at all is `0s`.
export function duration(ms) {
  let rest = Math.round(Number(ms));
  const pieces = [];
  for (const [unit, length] of UNITS) {
    const n = Math.floor(rest / length);
    if (n > 0) pieces.push(`${n}${unit}`);
    rest -= n * length;
  }
  return pieces.join(" ") || "0s";
}

// Returns the milliseconds of such a text. `what` names it in the error that another text gets.
export function milliseconds(text, what) {
  const given = text.trim();
  if (!WHOLE.test(given)) throw new Error(`${what} is a number with a unit, such as 90m, 6h or 1d 12h, and not ${given}`);
  return [...given.matchAll(PIECE)].reduce((sum, [, n, unit]) => sum + Number(n) * LENGTHS.get(unit), 0);
}
