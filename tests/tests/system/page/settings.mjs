// Settings as the texts of a form, and back: exact, or refused.

import assert from "node:assert/strict";
import { test } from "node:test";
import { appliesWhen, changed, changesOf, needsRestart, textIn, valueIn, valueOf } from "../../../../host/api/src/http/page/settings.mjs";

const row = (part, field, form, more = {}) => ({ part, field, name: field, form, default: "", applies: "at once", restarts: false, ...more });
const DELAY = row("crawl", "delay_ms", "time");
const DISK = row("crawl", "max_disk", "bytes");
const PAGES = row("crawl", "max_pages", "number");
const SCOPE = row("crawl", "scope", "texts");
const PLUGIN = row("", "plugin", "text");
const PARAMS = row("", "params", "pairs", { restarts: true });
const WEIGHT = row("placement", "weight", "number", { default: "1" });
const ROWS = [DELAY, DISK, PAGES, SCOPE, PLUGIN, PARAMS, WEIGHT];

const SPEC = {
  name: "books", id: "7", assigned_node: "worker-1|a", plugin: "books@1.0.0", params: { start: "https://a.test/?q=1" }, limits: { cpu: 500 },
  crawl: { delay_ms: 90_000, max_disk: 10 * 2 ** 30, scope: ["*.a.test", "b.test"] }, placement: { weight: 1 }, labels: { team: "shop" },
};

test("a value is shown as it can be written", () => {
  const texts = ROWS.map(one => textIn(SPEC, one));
  assert.deepEqual(texts, ["1m 30s", "10GiB", "", "*.a.test\nb.test", "books@1.0.0", "start=https://a.test/?q=1", ""]);
  for (const [i, one] of ROWS.entries()) assert.deepEqual(valueOf(one, texts[i]), valueIn(SPEC, one));
});

test("a value whose text would be another one is not shown as text", () => {
  const check = (one, value) => assert.equal(textIn(one.part ? { [one.part]: { [one.field]: value } } : { [one.field]: value }, one), null);
  check(PAGES, 2 ** 53);
  check(SCOPE, ["a\nb"]);
  check(PARAMS, { "a=b": "c" });
  check(PARAMS, { a: "two\nlines" });
  check(PARAMS, { a: "ends with a space " });
  check(PLUGIN, "two\nlines");
});

test("a text that is no value is refused by the name of its setting", () => {
  for (const [one, text] of [[PAGES, "-1"], [PAGES, "1e3"], [PAGES, "9007199254740993"], [DISK, "10 GB"], [DISK, "1.5GiB"],
    [DELAY, "soon"], [PARAMS, "start"], [PARAMS, "=x"]]) {
    assert.throws(() => valueOf(one, text), new RegExp(`^Error: ${one.field} `), text);
  }
});

test("only what is different is a change", () => {
  const found = texts => changesOf(SPEC, ROWS, texts).map(({ row: { field }, before, after }) => [field, before, after]);
  assert.deepEqual(found({ "crawl.delay_ms": "90s", plugin: " books@1.0.0 ", "crawl.max_disk": "10240MiB" }), []);
  assert.deepEqual(found({ "crawl.max_pages": "7", "crawl.delay_ms": "" }), [["delay_ms", "1m 30s", ""], ["max_pages", "", "7"]]);
  assert.throws(() => found({ "crawl.max_pages": "x" }), /^Error: max_pages /);
});

test("a change takes the place of one value and keeps all others", () => {
  const make = texts => changed(SPEC, changesOf(SPEC, ROWS, texts));
  const { plugin, params, limits, crawl, placement, labels } = SPEC;
  const before = { plugin, params, limits, crawl, placement, labels };
  const { delay_ms: _, ...others } = crawl;
  assert.deepEqual(make({ "crawl.delay_ms": "" }), { ...before, crawl: others });
  assert.deepEqual(make({ "crawl.max_pages": "7", params: "a=1\nb=2=3" }), { ...before, crawl: { ...crawl, max_pages: 7 }, params: { a: "1", b: "2=3" } });
  assert.throws(() => changed({ ...SPEC, crawl: { unknown: 2 ** 53 } }, []), /too large to be kept by a browser/);
});

test("a restart is needed for params and for another plugin, and not for another version", () => {
  const found = texts => changesOf(SPEC, ROWS, texts);
  assert.equal(needsRestart(found({ plugin: "books@2.0.0", "crawl.max_pages": "7" })), false);
  assert.equal(needsRestart(found({ plugin: "shop" })), true);
  assert.equal(needsRestart(found({ params: "" })), true);
  assert.deepEqual(found({ plugin: "shop" }).map(appliesWhen), ["with a new run"]);
  assert.deepEqual(found({ plugin: "books@2.0.0" }).map(appliesWhen), ["at once"]);
});
