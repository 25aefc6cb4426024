// Closer looks at a crawl: the pages of an error with a command that saves each as a test, how fields are filled, and two runs side by side.

import assert from "node:assert/strict";
import { walk, WIDE } from "./browser.mjs";

await walk(async (browser, master, bad) => {
  await browser.size(...WIDE);
  const rows = caption => browser.look(`[...document.querySelectorAll('[aria-label=${JSON.stringify(caption)}] tbody tr')].map(
    row => [...row.cells].map(cell => cell.textContent.trim()))`);

  await browser.go(`${master}/#/resources/broken/errors`);
  await browser.press("[aria-label^='Pages: ']", "Pages");
  await browser.until("the page that was given up", `find('[aria-label="Pages given up"] th', ${JSON.stringify(bad)})`);
  assert.equal(await browser.look("Boolean(find('pre', 'crawler plugin fetch'))"), false);
  await browser.press("summary", "Save as a test");
  const command = await browser.until("the command", "find('pre', 'crawler plugin fetch')?.textContent");
  assert.ok(command.startsWith(`crawler plugin fetch ${bad} --rule=`), command);
  assert.ok(command.includes("--param=start="), command);
  // The reason stands in the address. One that no page has is told so.
  assert.ok((await browser.look("location.hash")).includes("reason="));
  await browser.go(`${master}/#/resources/broken/errors?reason=none-such`);
  await browser.until("that there is none", "find('.blank', 'None is left.')");

  await browser.go(`${master}/#/resources/books/items`);
  await browser.press(".sides a", "Fields");
  await browser.until("fields", "find('h2', 'Items of kind')");
  const kind = await browser.look("document.querySelector('main .frame').getAttribute('aria-label')");
  const fields = await rows(kind);
  const told = await browser.look("fetch('crawler/resource/books/statistics').then(answer => answer.json()).then(({ kinds }) => Object.values(kinds)[0])");
  const found = Object.fromEntries(fields.map(([field, n]) => [field, n]));
  const all = { ...told.filled, ...Object.fromEntries(told.always_empty.map(field => [field, 0])) };
  assert.deepEqual(found, Object.fromEntries(Object.entries(all).map(([field, n]) => [field, String(n)])));
  assert.ok(fields.some(([, n, share]) => Number(n) === Number(told.items) && share === "100 %"), JSON.stringify(fields));
  await browser.press("main p a", "Schemas of");
  await browser.until("the plugin", "find('h2', 'Params')");

  await browser.go(`${master}/#/resources/books/schedule`);
  await browser.press("tbody .acts a", "Compare");
  await browser.until("two runs", "find('thead th', 'Difference')");
  const sides = Object.fromEntries((await rows("Two runs")).map(([title, ...values]) => [title, values]));
  assert.deepEqual(sides.Plugin.slice(2), [""]);
  assert.deepEqual(sides.Pages, ["3", "3", ""]);
  assert.deepEqual(sides.Outcome, ["finished", "finished", ""]);
  await browser.text("The settings are the same.");
  await browser.text("Items: 1 added, 1 changed, 1 removed, told by 1 run.");
  await browser.type("input[name=before]", "2");
  await browser.type("input[name=after]", "1");
  await browser.press("form.filters button", "Compare");
  await browser.until("the master's answer", "location.hash.includes('before=2&after=1')");
  await browser.until("which is earlier", "find('.fault') || find('thead th', 'Run 1')");

  // Hosts tell what is in flight.
  await browser.go(`${master}/#/hosts?resource=books`);
  await browser.until("its host", "find('tbody th') && find('thead th', 'In flight')");
  browser.judge(master);
});
