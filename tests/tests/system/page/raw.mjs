// JSON that is shown as it was written.

import assert from "node:assert/strict";
import { test } from "node:test";
import { indented, member } from "../../../../host/api/src/http/page/raw.mjs";

test("a member is the text that was written", () => {
  for (const value of ["12345678901234567890", "1.10", "1e400", "-0", "null", '"a\\"},\\\\"', '{"item":{"x":[1,{}]}}', "[]", '"\\u0041"']) {
    for (const line of [`{"item":${value}}`, `{"url":"{\\"item\\":1}","of":{"item":0},"item":${value},"position":"7"}`]) {
      assert.equal(member(line, "item"), value, line);
    }
  }
  assert.equal(member('{"of":{"item":1}}', "item"), null);
});

test("a text that is indented is what a script would write", () => {
  const values = [{}, [], { a: 1, b: [1, { c: "x, {y}: [z]" }], d: {}, e: [[]], f: '"\\' }, "text", 7, null, [true, "a\nb"]];
  for (const value of values) assert.equal(indented(JSON.stringify(value)), JSON.stringify(value, null, 2));
});

test("numbers, names and their order stay as they are", () => {
  const text = '{"b":12345678901234567890,"2":1.10,"1":"\\u00e9"}';
  assert.equal(indented(text), '{\n  "b": 12345678901234567890,\n  "2": 1.10,\n  "1": "\\u00e9"\n}');
});
