// What the counts of a crawl come to, and how fast they grow.

import { useRef } from "./vendor/hooks.mjs";

// Pages that came to an end, in one way or another.
export const pagesDone = counts => (counts?.parsed ?? 0) + (counts?.other_done ?? 0) + (counts?.dead ?? 0);

// Share of the URLs that are known whose end is reached, from 0 to 1; `null` before the first URL.
export function progress(counts) {
  const done = pagesDone(counts);
  const known = done + (counts?.due ?? 0) + (counts?.in_flight ?? 0);
  return known ? done / known : null;
}

// Items for each page that was parsed; `null` before the first page.
export const itemYield = counts => (counts?.parsed ? counts.items / counts.parsed : null);

// Rates of things that are looked at again and again, by their keys.
export class Rates {
  #last = new Map();

  // Takes the numbers of all things that are there now, each as `[key, at, {name: number}]` with its time in
  // milliseconds. Returns the rates of each by its key, with the milliseconds that they are `over`; `null` until there are
  // two looks at it.
  update(looks) {
    const next = new Map();
    const rates = new Map();
    for (const [key, at, numbers] of looks) {
      const before = this.#last.get(key);
      if (before && at <= before.at) {
        next.set(key, before);
        rates.set(key, before.rates);
        continue;
      }
      const told = before ? growth(before, at, numbers) : null;
      next.set(key, { at, numbers, rates: told });
      rates.set(key, told);
    }
    this.#last = next;
    return rates;
  }
}

// Numbers that have become less belong to another run, so nothing is known of their growth.
function growth(before, at, numbers) {
  const seconds = (at - before.at) / 1000;
  const grown = Object.entries(numbers).map(([name, n]) => [name, (n - before.numbers[name]) / seconds]);
  const isOneRun = grown.every(([, perSecond]) => perSecond >= 0);
  return isOneRun ? { ...Object.fromEntries(grown), over: at - before.at } : null;
}

// Returns the rates by key. `looks()` tells the numbers of `answer`, and is called once for each answer.
export function useRates(answer, looks) {
  const own = useRef(null);
  own.current ??= { rates: new Rates(), answer: undefined, byKey: new Map() };
  if (answer !== undefined && own.current.answer !== answer) {
    own.current.answer = answer;
    own.current.byKey = own.current.rates.update(looks());
  }
  return own.current.byKey;
}

// The look at a resource whose counts were read at this time.
export const lookAt = ({ spec, counts }, at) => [
  spec.name, at, { pages: pagesDone(counts), items: counts?.items ?? 0 },
];
