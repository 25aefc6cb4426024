// Rates of numbers that are looked at again and again.

import assert from "node:assert/strict";
import { test } from "node:test";
import { addPoint, lookAt, lookAtWorker, rateKey, Rates, runKey, workerKey } from "../../../../host/api/src/http/page/rates.mjs";

const APART = 10_000;

// Returns the rates of one thing after each of these looks, each `[at, pages]` or `[at, pages, key]`.
function after(...looks) {
  const rates = new Rates();
  return looks.map(([at, pages, key = "one"]) => rates.update([[key, at, { pages }]], APART).get(key));
}

test("two looks make a rate", () => {
  assert.deepEqual(after([0, 10], [2_000, 30]), [null, { pages: 10, over: 2_000 }]);
});

test("the same look again has the same rate", () => {
  const [, first, again] = after([0, 10], [2_000, 30], [2_000, 30]);
  assert.deepEqual(again, first);
});

test("another run has no rate yet", () => {
  assert.equal(after([0, 10, "1 1"], [2_000, 30, "1 2"]).at(-1), null);
});

test("a number that becomes less begins anew", () => {
  const told = after([0, 1_000], [1_000, 400], [2_000, 410], [3_000, 420]);
  assert.deepEqual(told, [null, null, ...Array(2).fill({ pages: 10, over: 1_000 })]);
});

test("looks far apart make no rate", () => {
  assert.equal(after([0, 10], [10_001, 30]).at(-1), null);
});

test("a clock that was put back begins anew", () => {
  const told = after([100_000, 10], [102_000, 30], [50_000, 40], [52_000, 60]);
  assert.deepEqual(told, [null, { pages: 10, over: 2_000 }, null, { pages: 10, over: 2_000 }]);
});

test("a master that knows less changes no rate", () => {
  const told = after([0, 10], [2_000, 30], [0, 10], [4_000, 70]);
  assert.deepEqual(told.map(rates => rates?.pages ?? null), [null, 10, 10, 20]);
});

test("what has told nothing new for long has no rate", () => {
  const rates = new Rates();
  const told = (at, pages, now) => rates.update([["one", at, { pages }]], APART, now).get("one")?.pages ?? null;
  assert.deepEqual([told(0, 10, 0), told(2_000, 30, 2_000), told(2_000, 30, 12_000), told(2_000, 30, 12_001)], [null, 10, 10, null]);
  assert.deepEqual([told(14_000, 90, 14_000), told(15_000, 95, 15_000)], [null, 5]);
});

test("things that went are forgotten", () => {
  const rates = new Rates();
  rates.update([["one", 0, { pages: 1 }]], APART);
  rates.update([], APART);
  assert.equal(rates.update([["one", 1_000, { pages: 2 }]], APART).get("one"), null);
});

test("what is not told has no rate and begins anew", () => {
  const rates = new Rates();
  const looks = [["one", 0, { pages: 1 }], null, ["one", 2_000, { pages: 9 }], ["one", 3_000, { pages: 10 }]];
  const told = looks.map(look => rates.update([look], APART).get("one"));
  assert.deepEqual(told, [null, undefined, null, { pages: 1, over: 1_000 }]);
});

// Returns the rates of a worker after it told its totals at these times, each `[at, pages of its runs, since_start]`.
function ofWorker(...told) {
  const rates = new Rates();
  return told.map(([at, pages, since_start]) => {
    const node = { id: "worker-1", started_at: 1, totals: { at, pages, items: pages, since_start } };
    return rates.update([lookAtWorker(node)], APART).get(workerKey(node));
  });
}

test("a crawl that comes to a worker or leaves it is no growth", () => {
  const done = pages => ({ pages, items: 2 * pages });
  const told = ofWorker([0, 50, done(50)], [5_000, 100_055, done(55)], [10_000, 0, done(60)], [15_000, 4, done(65)]);
  assert.deepEqual(told, [null, ...Array(3).fill({ pages: 1, items: 2, over: 5_000 })]);
});

test("a worker that does not tell what it has done has no rate", () => {
  assert.deepEqual(ofWorker([0, 10, null], [5_000, 20, null]), [undefined, undefined]);
  assert.equal(lookAtWorker({ id: "worker-1", started_at: 1, totals: { at: 0, pages: 10, items: 10 } }), null);
  assert.equal(lookAtWorker({ id: "worker-1", started_at: 1, totals: null }), null);
});

test("another process of a worker begins anew", () => {
  const look = started_at => lookAtWorker({ id: "worker-1", started_at, totals: { at: 5, since_start: { pages: 1, items: 1 } } });
  assert.notEqual(look(1)[0], look(2)[0]);
});

// A resource with these shards, each `[pages, live]`.
const resource = (...shards) => ({
  spec: { id: "7" },
  run: 1,
  shards: shards.map(([parsed, live], shard) => ({ shard, live, counts: { parsed, items: 0 } })),
});

// Returns the pages a second of a resource after looks every `period` milliseconds.
function ofResource(period, ...told) {
  const rates = new Rates();
  return told.map((one, n) => rates.update([lookAt(one, n * period)], APART).get(rateKey(one))?.pages ?? null);
}

test("stored counts after a crash are no look, however long they are told", () => {
  const lost = Array(9).fill(resource([400, false]));
  const told = ofResource(1_000, resource([990, true]), resource([1_000, true]), ...lost, resource([1_010, true]),
    resource([1_020, true]));
  assert.deepEqual(told, [null, 10, ...Array(9).fill(null), null, 10]);
});

test("counts of a master that does not tell if they are live have no rate", () => {
  assert.deepEqual(ofResource(1_000, resource([10]), resource([20]), resource([30])), [null, null, null]);
});

test("a shard that goes and comes back is no growth", () => {
  const [both, one] = [true, false].map(live => pages => resource([pages, true], [live ? 5_000 + pages : 300, live]));
  const told = ofResource(1_000, both(10), both(20), one(30), one(40), both(50), both(60));
  assert.deepEqual(told, [null, 20, null, 10, null, 20]);
});

test("the chart of a run goes on while shards come and go", () => {
  const [all, some] = [resource([1, true], [1, true]), resource([1, true], [1, false])];
  assert.notEqual(rateKey(all), rateKey(some));
  assert.equal(runKey(all), runKey(some));
  assert.notEqual(runKey(all), runKey({ ...all, run: 2 }));
});

test("a chart leaves a gap where there are no rates", () => {
  const points = [[], [], []];
  const told = [null, { pages: 1, items: 2 }, undefined, null, null, { pages: 0, items: 0 }];
  told.forEach((rates, at) => addPoint(points, at, rates, 10));
  assert.deepEqual(points, [[1, 2, 5], [1, null, 0], [2, null, 0]]);
});

test("a chart keeps its last points", () => {
  const points = [[], [], []];
  for (let at = 0; at < 5; at += 1) addPoint(points, at, { pages: at, items: at }, 3);
  assert.deepEqual(points, Array(3).fill([2, 3, 4]));
});
