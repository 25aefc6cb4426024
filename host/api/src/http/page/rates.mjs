// How fast numbers grow that are looked at again and again, the looks at resources and workers, and the points of a chart. It needs no
// browser, so that Node.js can test it.

// Rates of things, by their keys.
export class Rates {
  #last = new Map();

  // Takes the numbers of all things that are there now, each as `[key, at, {name: number}]` with its time in
  // milliseconds; `null` stands for one whose numbers are not told. Returns the rates of each by its key, with the milliseconds
  // that they are `over`; `null` until there are two looks at it, where they are more than `apart` milliseconds apart, and where
  // the last one has been told for more than `apart` milliseconds until `now`, by the page's own clock.
  //
  // A thing of which a number has become less begins anew, such as after a redrive: pages that were given up wait again. So does
  // one whose clock was put back by more than `apart`. A time that is a little earlier comes from a master that knows less.
  update(looks, apart, now = performance.now()) {
    const next = new Map();
    const rates = new Map();
    for (const [key, at, numbers] of looks.filter(Boolean)) {
      const before = this.#last.get(key);
      const look = isAgain(before, at, apart) ? before : { ...follow(before, at, numbers, apart), since: now };
      next.set(key, look);
      rates.set(key, now - look.since > apart ? null : look.rates);
    }
    this.#last = next;
    return rates;
  }
}

// True if a look at this time tells nothing new.
const isAgain = (before, at, apart) => before !== undefined && at <= before.at && before.at - at <= apart;

function follow(before, at, numbers, apart) {
  if (!before || Math.abs(at - before.at) > apart) return { at, numbers, rates: null };
  const names = Object.keys(numbers);
  if (names.some(name => numbers[name] < before.numbers[name])) return { at, numbers, rates: null };
  const seconds = (at - before.at) / 1000;
  const grown = names.map(name => [name, (numbers[name] - before.numbers[name]) / seconds]);
  return { at, numbers, rates: { ...Object.fromEntries(grown), over: at - before.at } };
}

// Adds rates to the points of a chart, which are lists of times, pages and items, and drops those before the last `most`. One point
// without values stands for a time without rates, so that the chart leaves a gap.
export function addPoint(points, at, rates, most) {
  const isGapDue = points[0].length > 0 && points[1].at(-1) !== null;
  if (!rates && !isGapDue) return;
  [at, rates?.pages ?? null, rates?.items ?? null].forEach((value, i) => points[i].push(value));
  for (const list of points) list.splice(0, list.length - most);
}

// Pages that came to an end, in one way or another.
export const pagesDone = counts => (counts?.parsed ?? 0) + (counts?.other_done ?? 0) + (counts?.dead ?? 0);

// A run of a resource: another run, or another resource of the name, has another key.
export const runKey = ({ spec, run }) => `${spec.id} ${run}`;

// Shards whose workers have told their counts for this answer.
const liveShards = ({ shards }) => shards.filter(shard => shard.live);

// Rates of a resource are those of one run and of the same shards: one that comes or goes, with all of its pages, is no growth.
export const rateKey = resource => [runKey(resource), ...liveShards(resource).map(({ shard }) => shard)].join(" ");

// The look at a resource that was read at this time: the counts of its shards that are live, or `null` if none is. Stored counts
// are left out. They may be older than those before, such as after a crash of a worker, so that what follows would be taken
// for growth.
export function lookAt(resource, at) {
  const live = liveShards(resource);
  if (!live.length) return null;
  const sum = number => live.reduce((whole, { counts }) => whole + number(counts), 0);
  return [rateKey(resource), at, { pages: sum(pagesDone), items: sum(counts => counts?.items ?? 0) }];
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
