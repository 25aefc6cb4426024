// Changes of items from run to run: of the present run with old values, of an earlier one, and none where items are not compared.

import assert from "node:assert/strict";
import { walk, WIDE } from "./browser.mjs";

await walk(async (browser, master, site) => {
  await browser.size(...WIDE);
  // The kinds of changes, in the order of the alphabet: pages of a run may end in any order.
  const marks = "[...document.querySelectorAll('.items .mark')].map(one => one.textContent).sort().join()";

  await browser.go(`${master}/#/resources/books/items`);
  await browser.press(".sides a", "Changes");
  await browser.until("the changes of the second run", `${marks} === 'added,changed,removed'`);
  assert.equal(await browser.look("document.querySelector('.sides [aria-current]').textContent"), "Changes");
  await browser.text("The run is complete");
  // The changed item is shown by its field, with the value before and now.
  const cells = "[...document.querySelectorAll('.items tbody tr')].map(row => [...row.cells].map(cell => cell.textContent).join(' '))";
  assert.deepEqual(await browser.look(cells), [`url "${site}1" "${site}3"`]);
  await browser.press("summary", "The item as it is now");
  await browser.until("the item", "find('details pre', '\"state\": \"moved\"')");
  // What is gone is shown as it was.
  await browser.until("what is gone", "find('.items pre', '\"state\": \"gone\"')");

  await browser.type("input[name=run]", "1");
  await browser.press("form.filters button", "Show");
  await browser.until("the changes of the first run", `${marks} === 'added,added,added'`);

  // A run leads to its changes.
  await browser.press(".tabs a", "Schedule");
  await browser.press("tbody .acts a[aria-label='Changes of run 2']");
  await browser.until("the changes of the second run again", `${marks} === 'added,changed,removed'`);
  assert.equal(await browser.look("document.querySelector('input[name=run]').value"), "2");
  await browser.press(".sides a", "Items");
  await browser.until("the items", "document.querySelectorAll('.items pre').length === 3 && !find('.mark')");

  await browser.go(`${master}/#/resources/plain/items?show=changes`);
  await browser.until("why there are none", "find('.fault', 'plain')");
  browser.judge(master);
});
