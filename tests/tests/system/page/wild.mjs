// Items with fields of any name and values of 10 000 characters, and the descriptions of a plugin, are text in every view that has them.

import { walk, WIDE } from "./browser.mjs";

await walk(async (browser, master, field) => {
  await browser.size(...WIDE);
  const long = "x".repeat(10_000);
  const views = [
    ["resources", "wild", "find('h1', 'Resources')"],
    ["resources/wild", "Shards", "find('.tabs [aria-current]', 'Now')"],
    ["resources/wild/items?run=1", long, "find('.items pre')"],
    ["resources/wild/items?show=fields&run=1", field, "find('progress')"],
    ["resources/wild/items?show=changes&run=2", field, "find('.mark.changed')"],
    ["resources/wild/errors", field, "find('h2', 'Held items')"],
    ["resources/wild/schedule?before=1&after=2", "Difference", "true"],
    ["resources/wild/events", field, "find('td', 'items-held')"],
    ["hosts?resource=wild", "127.0.0.1", "find('h1', 'Hosts')"],
    ["plugins", "hostile", "find('h1', 'Plugins')"],
    ["plugins/hostile", long, "find('h2', 'Items of kind any') && find('h2', 'Params')"],
    // The host cuts what a plugin says of its params.
    ["add?plugin=hostile", "x".repeat(500), "find('input[name=param-root]')"],
    ["nodes", "worker-1", "find('h2', 'Events')"],
  ];
  for (const [view, text, isThere] of views) {
    await browser.go(`${master}/#/${view}`);
    await browser.until(`the view ${view}`, isThere);
    await browser.text(text);
    await browser.isHarmless(view);
  }
  browser.judge(master);
});
