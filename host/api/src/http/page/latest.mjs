// The last lines of a log that is read more than once. It needs no browser, so that Node.js can test it.

// Words of the line by which a worker stands for those that its log has dropped. Its number is just below that of the oldest line
// that is left, and its time is that of the reading.
const GONE = /^\d+ lines? (?:is|are) gone: the log keeps the last /;

// Returns the last `most` of the lines that were shown and of those that the present reading has told, each of them once. One that
// was read again is told as it is now.
//
// Lines of a shard are in the order of their numbers, whatever the clocks of its workers say. Those of several shards are merged by
// their times: no line counts as later than one that follows it in its shard.
export function latest(shown, read, most) {
  // The master tells anew what it cannot read at present.
  const lasting = shown.filter(line => !isOfMaster(line));
  const byKey = new Map([...lasting, ...read].map(line => [keyOf(line), line]));
  const lines = withoutGoneBefore([...byKey.values()]).sort(byNumber);
  const times = timesOf(lines);
  return lines.sort((one, other) => times.get(one) - times.get(other)).slice(-most);
}

// A number alone is not enough: the one that stands for dropped lines has that of one of them.
export const keyOf = ({ run, shard, number, message }) => `${run} ${shard} ${number} ${message}`;

// True if a line is none of a shard's log: the master tells by it that it cannot read the log.
const isOfMaster = ({ number }) => Number(number) === 0;

const isGone = ({ url, rule, message }) => !url && !rule && GONE.test(message);

// Leaves out all lines that stand for dropped ones, except for the last one of each shard, which is the next to what is left.
function withoutGoneBefore(lines) {
  const last = new Map();
  for (const line of lines.filter(isGone)) {
    const before = last.get(line.shard);
    if (!before || Number(before.number) <= Number(line.number)) last.set(line.shard, line);
  }
  return lines.filter(line => !isGone(line) || last.get(line.shard) === line);
}

const byNumber = (one, other) => one.shard - other.shard || one.number - other.number || isGone(one) - isGone(other);

// Returns the times by which lines are merged. They have to be in the order of their shards and numbers.
function timesOf(lines) {
  const times = new Map();
  const least = new Map();
  for (const line of lines.slice().reverse()) {
    const at = isOfMaster(line) ? Number(line.at) : Math.min(line.at, least.get(line.shard) ?? Infinity);
    if (!isOfMaster(line)) least.set(line.shard, at);
    times.set(line, at);
  }
  return times;
}
