// Spans of time, as they are shown and written.

import assert from "node:assert/strict";
import { test } from "node:test";
import { duration, milliseconds } from "../../../../host/api/src/http/page/times.mjs";

const SPANS = [[0, "0s"], [5, "5ms"], [60_000, "1m"], [5_400_000, "1h 30m"], [21_600_000, "6h"], [108_000_000, "1d 6h"], [86_401_001, "1d 1s 1ms"]];

test("a span of time is shown as it can be written", () => {
  for (const [ms, text] of SPANS) {
    assert.equal(duration(ms), text);
    assert.equal(milliseconds(text, "it"), ms);
  }
});

test("spaces and the order of units do not matter", () => {
  for (const text of [" 1h30m ", "30 m 1 h", "90m", "5400s"]) assert.equal(milliseconds(text, "it"), 5_400_000, text);
});

test("a text that is no span of time is refused by its name", () => {
  for (const text of ["", "6", "h", "6 hours", "-6h", "1.5h", "6h!", "h6"]) {
    assert.throws(() => milliseconds(text, "an interval"), /^Error: an interval is a number with a unit/, text);
  }
});
