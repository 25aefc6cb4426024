// Commands with words of sites and rules, as a shell takes them.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { test } from "node:test";
import { fetchCommand, quoted } from "../../../../host/api/src/http/page/shell.mjs";

const ENTRY = { url: "https://a.test/?a=1&b='$(id)`id`;#!", method: "GET", body: "", rule: "detail" };

test("a shell takes a word as it is", () => {
  for (const word of ["plain", "", "a b", "it's", "$HOME `id` $(id) \\ \" ' * ? ! # & | ; < > ~", "--rule=ä€😀"]) {
    const told = execFileSync("sh", ["-c", `printf %s ${quoted(word)}`]).toString();
    assert.equal(told, word);
  }
});

test("a word that a terminal could obey is not told", () => {
  for (const word of ["\n", "a\u001b[201~b", "\u0000", "\u009b", "\u2028"]) {
    assert.equal(quoted(word), null);
    assert.equal(fetchCommand({}, { ...ENTRY, rule: word }), null);
    assert.equal(fetchCommand({ params: { a: word } }, ENTRY), null);
  }
});

test("the command has all words of the request, and the params of the resource", () => {
  const told = (spec, entry) => execFileSync("sh", ["-c", `crawler() { printf '%s\\n' "$@"; }; ${fetchCommand(spec, entry)}`]).toString().split("\n");
  assert.deepEqual(told({}, ENTRY), ["plugin", "fetch", ENTRY.url, "--rule=detail", ""]);
  const posted = { ...ENTRY, method: "POST", body: "page=2" };
  assert.deepEqual(told({ params: { start: "https://a.test/" } }, posted),
    ["plugin", "fetch", ENTRY.url, "--rule=detail", "--method=POST", "--body=page=2", "--param=start=https://a.test/", ""]);
});

test("a body that is not told as it is makes no command", () => {
  for (const body of ["the beginning…", "no text: \ufffd"]) {
    assert.equal(fetchCommand({}, { ...ENTRY, method: "POST", body }), null);
  }
});
