// What the counts of a crawl come to, and how fast they grow.

import { pagesDone, Rates } from "./rates.mjs";
import { useRef } from "./vendor/hooks.mjs";

export { lookAt, pagesDone, rateKey, runKey } from "./rates.mjs";

// Share of the URLs that are known whose end is reached, from 0 to 1; `null` before the first URL.
export function progress(counts) {
  const done = pagesDone(counts);
  // Pages in flight are due until their end.
  const known = done + (counts?.due ?? 0);
  return known ? done / known : null;
}

// Items for each page that was parsed; `null` before the first page.
export const itemYield = counts => (counts?.parsed ? counts.items / counts.parsed : null);

// A rate is that between two looks, unless they are further apart than so many times the usual.
const PERIODS_APART = 4;

// Returns the rates by key. `looks()` tells the numbers of `answer`, and is called once for each answer. They are looked at every
// `period` milliseconds.
export function useRates(answer, period, looks) {
  const own = useRef(null);
  own.current ??= { rates: new Rates(), answer: undefined, byKey: new Map() };
  if (answer !== undefined && own.current.answer !== answer) {
    own.current.answer = answer;
    own.current.byKey = own.current.rates.update(looks(), PERIODS_APART * period);
  }
  return own.current.byKey;
}
