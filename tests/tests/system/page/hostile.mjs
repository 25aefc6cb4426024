// Everything that sites and rules write is shown as text: nothing of it runs, nothing of it is asked for, and a word of 10 000 characters
// makes no view wider than the window.

import assert from "node:assert/strict";
import { PHONE, walk, WIDE } from "./browser.mjs";

await walk(async (browser, master, bad, markup) => {
  await browser.size(...WIDE);
  const views = [
    ["", "Now", "Shards"],
    ["/items", "Items", "<img src=x"],
    ["/items", "Items", "x".repeat(3_000)],
    ["/items?show=fields", "Items", "Items of kind"],
    ["/items?show=changes", "Items", "<img src=x", "find('.mark.added')"],
    ["/schedule", "Schedule", "The resource has no schedule"],
    ["/logs", "Log", "<script>"],
    ["/errors", "Errors", "URLs that were given up"],
    ["/errors?reason=rule-error", "Errors", "Save as a test", "find('[aria-label=\"Pages given up\"] summary')"],
    [`/frontier?url=${encodeURIComponent(bad)}`, "Frontier", "<script>"],
    ["/settings", "Settings", "x".repeat(10_000)],
  ];
  const check = async view => {
    assert.equal(await browser.look("window.ran"), undefined, view);
    const made = "document.querySelectorAll('main :is(img, svg, script, iframe, object, embed)').length";
    assert.equal(await browser.look(made), 0, view);
    const led = "[...document.querySelectorAll('main a')].map(one => one.protocol)";
    for (const protocol of await browser.look(led)) assert.match(protocol, /^https?:$/, view);
    for (const form of [PHONE, WIDE]) {
      await browser.size(...form);
      assert.ok(await browser.look("document.documentElement.scrollWidth <= innerWidth"), `${view} at ${form}`);
    }
  };
  // `isThere` is true only of the view itself where its text is that of the view before, too.
  for (const [view, tab, text, isThere = "true"] of views) {
    await browser.go(`${master}/#/resources/evil${view}`);
    await browser.until(`the side ${tab}`, `find('.tabs [aria-current]', ${JSON.stringify(tab)}) && ${isThere}`);
    await browser.text(text);
    // The example of a dead letter comes by a call of its own.
    const example = `find('[aria-label^="Dead letters"] a', ${JSON.stringify(bad)})`;
    if (tab === "Errors") await browser.until("an example of a dead letter", example);
    await check(view);
  }
  // The rule here has fields of its own, so an answer with other ones is made up.
  const changes = [{ change: "changed", key: markup, kind: markup, run: 1, fields: [markup], old: { [markup]: markup }, item: { [markup]: markup } }];
  const answer = JSON.stringify({ totals: {}, next_page_token: "", changes });
  await browser.look(`window.whole = fetch; window.fetch = (path, options) =>
    path.includes("/changes?") ? new Response(${JSON.stringify(answer)}) : whole(path, options); null`);
  await browser.go(`${master}/#/resources/evil/items?show=changes&run=1`);
  await browser.until("a change of a field", "find('.mark.changed') && find('.items tbody th', '<script>')");
  await browser.press("summary");
  await browser.until("the whole item", "find('details pre', '<script>')");
  await check("a field");
  await browser.look("window.fetch = whole; null");
  // Addresses that are no places on the web are never links.
  const places = ["javascript:ran=1", " javascript:ran=1", "JaVaScRiPt:ran=1", "data:text/html,<script>ran=1</script>", "vbscript:x",
    "file:///etc/passwd", "blob:http://a.test/1", "//a.test/", "x"];
  for (const place of places) {
    const told = `import("./page/format.js").then(({ webAddress }) => String(webAddress(${JSON.stringify(place)})))`;
    assert.equal(await browser.look(told), "null", place);
  }
  browser.judge(master);
});
