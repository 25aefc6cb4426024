// Rates of numbers that are looked at again and again.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Rates } from "../../../../host/api/src/http/page/rates.mjs";

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

test("what was missing for a while is no growth", () => {
  const [, lost, back, next] = after([0, 1_000], [1_000, 400], [2_000, 1_010], [3_000, 1_020]);
  assert.equal(lost, null);
  assert.deepEqual(back, { pages: 5, over: 2_000 });
  assert.deepEqual(next, { pages: 10, over: 1_000 });
});

test("a number that stays less is compared with itself", () => {
  const told = after([0, 1_000], [9_000, 400], [11_000, 410], [12_000, 420]);
  assert.deepEqual(told, [null, null, null, { pages: 10, over: 1_000 }]);
});

test("looks far apart make no rate", () => {
  assert.equal(after([0, 10], [10_001, 30]).at(-1), null);
});

test("things that went are forgotten", () => {
  const rates = new Rates();
  rates.update([["one", 0, { pages: 1 }]], APART);
  rates.update([], APART);
  assert.equal(rates.update([["one", 1_000, { pages: 2 }]], APART).get("one"), null);
});
