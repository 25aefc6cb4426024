// JSON that is shown as it was written.

import assert from "node:assert/strict";
import { test } from "node:test";
import { elements, indented, member, members, readable } from "../../../../host/api/src/http/page/raw.mjs";

test("a member is the text that was written", () => {
  for (const value of ["12345678901234567890", "1.10", "1e400", "-0", "null", '"a\\"},\\\\"', '{"item":{"x":[1,{}]}}', "[]", '"\\u0041"']) {
    for (const line of [`{"item":${value}}`, `{"url":"{\\"item\\":1}","of":{"item":0},"item":${value},"position":"7"}`]) {
      assert.equal(member(line, "item"), value, line);
    }
  }
  assert.equal(member('{"of":{"item":1}}', "item"), null);
});

test("a member is found by its name, however that is written", () => {
  for (const text of ['{"é":1.10}', '{"\\u00e9":1.10}']) assert.equal(member(text, "é"), "1.10", text);
  assert.equal(member('{"of":"é","é":2}', "é"), "2");
});

test("the members of an object are found in one pass", () => {
  const found = members('{ "b" : {"a":[1,{"b":2}]}, "a":1,"\\u0061": 2 ,"c":"},\\"" }');
  assert.deepEqual([...found], [["b", '{"a":[1,{"b":2}]}'], ["a", "2"], ["c", '"},\\""']]);
  for (const none of ["{}", "[1]", "7", '"a:1"']) assert.equal(members(none).size, 0, none);
});

test("a string may have any number of escapes", () => {
  for (const escape of ['\\"', "\\\\", "\\n"]) {
    const text = `"${escape.repeat(2_000_000)}"`;
    assert.equal(member(`{"long":${text},"x":1.10}`, "x"), "1.10", escape);
    assert.equal(elements(`[${text},1]`)[0].length, text.length, escape);
  }
});

test("elements of a list are the texts that were written", () => {
  const written = ["1.10", '{"a":[1,2],"b":"],"}', '"x,]"', "[[1],{}]", "null", "12345678901234567890"];
  for (const between of [",", " ,\n "]) assert.deepEqual(elements(`[ ${written.join(between)} ]`), written);
  assert.deepEqual([elements("[]"), elements(" [ ] ")], [[], []]);
});

test("a text that is indented is what a script would write", () => {
  const values = [{}, [], { a: 1, b: [1, { c: "x, {y}: [z]" }], d: {}, e: [[]], f: '"\\' }, "text", 7, null, [true, "a\nb"]];
  for (const value of values) assert.equal(indented(JSON.stringify(value)), JSON.stringify(value, null, 2));
});

test("numbers, names and their order stay as they are", () => {
  const text = '{"b":12345678901234567890,"2":1.10,"1":"\\u00e9"}';
  assert.equal(indented(text), '{\n  "b": 12345678901234567890,\n  "2": 1.10,\n  "1": "\\u00e9"\n}');
});

test("a text that is too long with its lines is shown as it was written", () => {
  const text = `${"[".repeat(9)}1.10${"]".repeat(9)}`;
  const lines = indented(text);
  assert.deepEqual(readable(text), { text: lines, note: "" });
  assert.deepEqual(readable(text, lines.length), { text: lines, note: "" });
  for (const most of [lines.length - 1, text.length]) {
    const shown = readable(text, most);
    assert.equal(shown.text, text, most);
    assert.match(shown.note, /^Too long/);
  }
});

test("a text that is too long even so is cut, and says so", () => {
  const shown = readable('{"a":"bcd"}', 5);
  assert.equal(shown.text, '{"a":');
  assert.match(shown.note, /the first 5 of 11 characters/);
});

test("an item of 4 MiB that is deeply nested stays small", () => {
  const depth = 127;
  const values = Array(2 << 20).fill("1").join();
  const text = `${"[".repeat(depth)}${values}${"]".repeat(depth)}`;
  assert.equal(member(`{"item":${text}}`, "item"), text);
  assert.ok(readable(text).text.length <= 256 * 1024);
});
