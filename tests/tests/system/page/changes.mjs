// Changes of items from run to run: of the present run with old values, of an earlier one, and none where items are not compared.

import assert from "node:assert/strict";
import { walk, WIDE } from "./browser.mjs";

const FIELDS = Array.from({ length: 103 }, (_, i) => `f${i}`);
const ITEM = Object.fromEntries(FIELDS.map(field => [field, 1]));
// A page of changes that no master would tell in a test: the second one has lost its old values.
const MADE_UP = {
  totals: { added: 0, changed: 2, unchanged: 0, removed: 0, repeated: 0, lacking_key: 0, complete: true },
  next_page_token: "",
  changes: [
    {},
    { change: "changed", key: "wide", kind: "k", run: 1, fields: FIELDS, old: {}, item: ITEM },
    { change: "changed", key: "usual", kind: "k", run: 1, fields: ["f1"], old: { f1: 2 }, item: ITEM },
  ],
};

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
  assert.equal(await browser.look("document.querySelectorAll('details pre').length"), 0, "what nobody sees is not made readable");
  await browser.press("summary", "The item as it is now");
  await browser.until("the item", "find('details pre', '\"state\": \"moved\"')");
  // What is gone is shown as it was.
  await browser.until("what is gone", "find('.items pre', '\"state\": \"gone\"')");

  await browser.type("input[name=run]", "1");
  await browser.press("form.filters button", "Show");
  await browser.until("the changes of the first run", `${marks} === 'added,added,added'`);
  // The same run is loaded again, though the address stays.
  await browser.look(`(() => {
    const before = window.fetch;
    window.nLoads = 0;
    window.fetch = (path, options) => {
      if (path.includes("/changes?")) window.nLoads += 1;
      return before(path, options);
    };
  })()`);
  await browser.press("form.filters button", "Show");
  await browser.until("the same run anew", `window.nLoads === 1 && ${marks} === 'added,added,added'`);
  // The run stands in the address. One that is no number means the present run.
  assert.ok((await browser.look("location.hash")).endsWith("run=1"));
  for (const none of ["-1", "1.5", "0x1", "many"]) {
    await browser.go(`${master}/#/resources/books/items?show=changes&run=${none}`);
    await browser.until(`no run ${none}`, `location.hash.endsWith(${JSON.stringify(`=${none}`)}) && ${marks} === 'added,changed,removed'`);
    assert.equal(await browser.look("document.querySelector('input[name=run]').value"), "2", none);
  }

  // A run leads to its changes.
  await browser.press(".tabs a", "Schedule");
  await browser.press("tbody .acts a[aria-label='Changes of run 2']");
  await browser.until("the changes of the second run again", `${marks} === 'added,changed,removed'`);
  assert.equal(await browser.look("document.querySelector('input[name=run]').value"), "2");
  await browser.press(".sides a", "Items");
  await browser.until("the items", "document.querySelectorAll('.items pre').length === 3 && !find('.mark')");

  await browser.go(`${master}/#/resources/plain/items?show=changes`);
  await browser.until("why there are none", "find('.fault', 'plain')");

  // Of a change with very many fields, the first ones are shown, and a change that cannot be shown hides no others.
  await browser.look(`window.whole = fetch; window.fetch = (path, options) =>
    path.includes("/changes?") ? new Response(${JSON.stringify(JSON.stringify(MADE_UP))}) : whole(path, options); null`);
  await browser.go(`${master}/#/resources/books/items?show=changes&run=1`);
  await browser.until("a change without old values", "find('.items li', 'wide') && find('.items li', 'No old value is told')");
  const wide = "document.querySelectorAll('.items li')[1]";
  assert.equal(await browser.look(`${wide}.querySelectorAll('tbody tr').length`), 100);
  assert.ok(await browser.look(`${wide}.textContent.includes('and 3 more')`));
  await browser.until("what cannot be shown", "find('.items li', 'This change cannot be shown here')");
  assert.equal(await browser.look("[...document.querySelectorAll('.items li')].filter(one => one.textContent.includes('No old value')).length"), 1);
  browser.judge(master);
});
