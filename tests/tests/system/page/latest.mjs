// The last lines of a log that is read more than once.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { latest } from "../../../../host/api/src/http/page/latest.mjs";

const line = (at, shard, number, more = 0) => ({ run: 1, shard, number, at, more, message: "a line", url: "", rule: "" });

// The line by which a worker stands for those that its log has dropped.
function gone(at, shard, number, n) {
  const limits = "the log keeps the last 100 lines and 1048576 bytes, the limits set by --max-log and --max-log-size";
  return { ...line(at, shard, number), message: `${n === 1 ? "1 line is" : `${n} lines are`} gone: ${limits}` };
}

// The line by which the master tells that it cannot read the log of a shard.
const missing = (at, shard) => ({ ...line(at, shard, 0), message: `lines of shard ${shard} are missing: no storage` });

test("lines of all shards are in the order of their times", () => {
  const [one, two, three, four] = [line(1, 1, 1), line(2, 0, 9), line(2, 0, 10), line(3, 1, 2)];
  assert.deepEqual(latest([], [two, three, one, four], 10), [one, two, three, four]);
});

test("lines that were shown stay while the log is read again", () => {
  const [one, two, three] = [line(1, 0, 1), line(2, 1, 1), line(3, 1, 2)];
  assert.deepEqual(latest([one, two], [], 10), [one, two]);
  assert.deepEqual(latest([one, two], [one, three], 10), [one, two, three]);
});

test("a line that was read again is told as it is now", () => {
  assert.deepEqual(latest([line(1, 0, 1)], [line(1, 0, 1, 9)], 10), [line(1, 0, 1, 9)]);
});

test("the last lines are kept, in whatever order they were read", () => {
  const [one, two, three] = [line(1, 0, 1), line(2, 1, 1), line(3, 0, 2)];
  assert.deepEqual(latest([], [three, two, one], 2), [two, three]);
});

test("numbers that are written as texts are numbers", () => {
  const [one, two] = [{ run: "1", shard: 0, number: "9", at: "99" }, { run: "1", shard: 0, number: "10", at: "100" }];
  assert.deepEqual(latest([], [two, one], 10), [one, two]);
});

test("lines that are gone are told once, before the oldest that is left", () => {
  const [three, four, five, other] = [line(30, 0, 3), line(40, 0, 4), line(50, 0, 5), line(45, 1, 1)];
  const first = gone(60, 0, 2, 1);
  const shown = latest([], [first, three, four, other], 10);
  assert.deepEqual(shown, [first, three, four, other]);
  const second = gone(70, 0, 3, 2);
  const again = latest(shown, [second, four, other, five], 10);
  assert.deepEqual(again, [three, second, four, other, five]);
  assert.deepEqual(latest(again, [gone(80, 0, 3, 2), four, other, five], 10).length, 5);
});

test("each shard tells of its own lines that are gone", () => {
  const told = [gone(9, 0, 1, 1), line(2, 0, 2), gone(9, 1, 1, 7), line(3, 1, 2)];
  assert.deepEqual(latest([], told, 10), told);
});

test("a line that was dropped meanwhile is still shown", () => {
  const [dropped, left] = [line(10, 0, 1), line(20, 0, 2)];
  const told = gone(90, 0, 1, 1);
  assert.deepEqual(latest([dropped, left], [told, left], 10), [dropped, told, left]);
});

test("lines with words of a worker that a rule has written stay", () => {
  const written = [1, 2].map(number => ({ ...gone(number, 0, number, 1), url: "http://a.test/", rule: "leaf" }));
  assert.deepEqual(latest([], written, 10), written);
});

test("the words for lines that are gone are those of a worker", () => {
  const log = readFileSync(new URL("../../../../host/crawl/src/log.rs", import.meta.url), "utf8");
  for (const words of ["1 line is gone", "{n} lines are gone", "{gone}: the log keeps the last "]) assert.ok(log.includes(words), words);
});

test("lines of a worker whose clock is behind are not cut off", () => {
  const ahead = Array.from({ length: 500 }, (_, n) => line(600_000 + n, 0, n + 1));
  const behind = [line(1_000, 0, 501), line(1_001, 0, 502)];
  assert.deepEqual(latest(ahead, behind, 500), [...ahead.slice(2), ...behind]);
  assert.deepEqual(latest([], [...behind, ...ahead], 500), [...ahead.slice(2), ...behind]);
});

test("lines of a shard keep their order beside those of others", () => {
  const [ahead, behind, between, after] = [line(900, 0, 1), line(20, 0, 2), line(15, 1, 1), line(30, 1, 2)];
  assert.deepEqual(latest([after, between, ahead], [behind], 10), [between, ahead, behind, after]);
});

test("what the master could not read is told for as long as it cannot", () => {
  const [of0, of1] = [line(10, 0, 1), line(30, 1, 1)];
  const shown = latest([], [missing(20, 0), of1], 10);
  assert.deepEqual(shown, [missing(20, 0), of1]);
  assert.deepEqual(latest(shown, [missing(40, 0), of1], 10), [of1, missing(40, 0)]);
  assert.deepEqual(latest(shown, [of0, of1], 10), [of0, of1]);
});

test("a shard whose log cannot be read keeps the times of its lines", () => {
  const [one, two, other] = [line(10, 0, 1), line(20, 0, 2), line(15, 1, 1)];
  assert.deepEqual(latest([one, two], [missing(5, 0), other], 10), [missing(5, 0), one, other, two]);
});
