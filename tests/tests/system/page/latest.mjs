// The last lines of a log that is read more than once.

import assert from "node:assert/strict";
import { test } from "node:test";
import { latest } from "../../../../host/api/src/http/page/latest.mjs";

const line = (at, shard, number, more = 0) => ({ run: 1, shard, number, at, more });

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
