// How fast numbers grow that are looked at again and again, and the looks at workers. It needs no browser, so that Node.js
// can test it.

// Rates of things, by their keys.
export class Rates {
  #last = new Map();

  // Takes the numbers of all things that are there now, each as `[key, at, {name: number}]` with its time in
  // milliseconds; `null` stands for one whose numbers are not told. Returns the rates of each by its key, with the milliseconds
  // that they are `over`; `null` until there are two looks at it, and where the last one is more than `apart` milliseconds ago.
  //
  // A number that has become less was not told in full, such as that of a shard whose worker does not answer. The look before it
  // stays the one to compare with, so that the number which comes back does not count as growth.
  update(looks, apart) {
    const next = new Map();
    const rates = new Map();
    for (const [key, at, numbers] of looks.filter(Boolean)) {
      const look = follow(this.#last.get(key), at, numbers, apart);
      next.set(key, look);
      rates.set(key, look.rates);
    }
    this.#last = next;
    return rates;
  }
}

function follow(before, at, numbers, apart) {
  if (!before || at - before.at > apart) return { at, numbers, rates: null };
  if (at <= before.at) return before;
  const names = Object.keys(numbers);
  if (names.some(name => numbers[name] < before.numbers[name])) return { ...before, rates: null };
  const seconds = (at - before.at) / 1000;
  const grown = names.map(name => [name, (numbers[name] - before.numbers[name]) / seconds]);
  return { at, numbers, rates: { ...Object.fromEntries(grown), over: at - before.at } };
}

// Rates of a worker are those of one process.
export const workerKey = node => `${node.id} ${node.started_at}`;

// The look at a worker: what its process has done since its start, when it told that last; `null` if it tells nothing of
// the kind, as one of an earlier version. Its other totals jump when a crawl comes, leaves or begins another run.
export function lookAtWorker(node) {
  const done = node.totals?.since_start;
  if (!done) return null;
  return [workerKey(node), Number(node.totals.at), { pages: Number(done.pages), items: Number(done.items) }];
}
