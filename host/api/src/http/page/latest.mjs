// The last lines of a log that is read more than once. It needs no browser, so that Node.js can test it.

// Returns the last `most` of the lines that were shown and of those that were read since, by their times, each of them once. One
// that was read again is told as it is now.
export function latest(shown, read, most) {
  const byKey = new Map([...shown, ...read].map(line => [keyOf(line), line]));
  return [...byKey.values()].sort(byTime).slice(-most);
}

export const keyOf = ({ run, shard, number }) => `${run} ${shard} ${number}`;

const byTime = (one, other) => one.at - other.at || one.shard - other.shard || one.number - other.number;
