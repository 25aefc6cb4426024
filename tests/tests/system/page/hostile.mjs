// Everything that sites and rules write is shown as text: nothing of it runs, nothing of it is asked for, and a word of 10 000 characters
// makes no view wider than the window.

import assert from "node:assert/strict";
import { walk, WIDE } from "./browser.mjs";

await walk(async (browser, master, bad) => {
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
  // The overview tells the last errors of what runs, which is over some time after its beginning.
  await browser.go(`${master}/`);
  await browser.until("an error", `find('[aria-label^="Last errors"] td', 'no rule is called')`);
  await browser.text("<script>");
  await browser.checkHarmless("the overview");
  // A crawl that runs tells how near its calls come to their limits.
  await browser.go(`${master}/#/resources/endless`);
  await browser.until("limits", `find('[aria-label="Largest use of limits"] th', 'fuel')`);
  await browser.checkHarmless("a crawl that runs");
  // `isThere` is true only of the view itself where its text is that of the view before, too.
  for (const [view, tab, text, isThere = "true"] of views) {
    await browser.go(`${master}/#/resources/evil${view}`);
    await browser.until(`the side ${tab}`, `find('.tabs [aria-current]', ${JSON.stringify(tab)}) && ${isThere}`);
    await browser.text(text);
    // The example of a dead letter comes by a call of its own.
    const example = `find('[aria-label^="Dead letters"] a', ${JSON.stringify(bad)})`;
    if (tab === "Errors") await browser.until("an example of a dead letter", example);
    await browser.checkHarmless(view);
  }
  // Addresses that are no places on the web are never links.
  const places = ["javascript:ran=1", " javascript:ran=1", "JaVaScRiPt:ran=1", "data:text/html,<script>ran=1</script>", "vbscript:x",
    "file:///etc/passwd", "blob:http://a.test/1", "//a.test/", "x"];
  for (const place of places) {
    const told = `import("./page/format.js").then(({ webAddress }) => String(webAddress(${JSON.stringify(place)})))`;
    assert.equal(await browser.look(told), "null", place);
  }
  browser.judge(master);
});
