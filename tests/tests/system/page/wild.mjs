// Items with fields of any name and values of 10 000 characters, and the descriptions of a plugin, are text in the views that have them.

import { walk, WIDE } from "./browser.mjs";

await walk(async (browser, master, field) => {
  await browser.size(...WIDE);
  const long = "x".repeat(10_000);
  const views = [
    ["resources/wild/items", long, "find('.items pre')"],
    ["resources/wild/items?show=fields", field, "find('progress')"],
    ["resources/wild/errors", field, "find('h2', 'Held items')"],
    ["resources/wild/events", field, "find('td', 'items-held')"],
    ["plugins/hostile", long, "find('h2', 'Items of kind any') && find('h2', 'Params')"],
    // The host cuts what a plugin says of its params.
    ["add?plugin=hostile", "x".repeat(500), "find('input[name=param-root]')"],
    ["resources/wild/items?show=changes&run=2", field, "find('.mark.changed') && find('.items tbody th', '<img')"],
  ];
  for (const [view, text, isThere] of views) {
    await browser.go(`${master}/#/${view}`);
    await browser.until(`the view ${view}`, isThere);
    await browser.text(text);
    await browser.checkHarmless(view);
  }
  await browser.press("summary");
  await browser.until("a whole item", "find('details pre', '<img')");
  await browser.checkHarmless("a whole item");
  browser.judge(master);
});
