// Settings of a resource are changed in a form: refused where a text is no value, shown before they are changed, made at once or with a new run,
// and never over the head of somebody else.

import assert from "node:assert/strict";
import { walk, WIDE } from "./browser.mjs";

await walk(async (browser, master) => {
  await browser.size(...WIDE);
  const note = async (kind, text) => {
    await browser.until(`a note with ${text}`, `find('.notes .${kind}', ${JSON.stringify(text)})`);
    await browser.press(".notes button");
    await browser.until("no note", "!find('.notes p')");
  };
  const add = async key => {
    await browser.until("the list of settings", "document.querySelector('select[name=setting]')");
    await browser.look(`(() => {
      const select = document.querySelector("select[name=setting]");
      select.value = ${JSON.stringify(key)};
      select.dispatchEvent(new Event("change", { bubbles: true }));
    })()`);
    await browser.until(`a field of ${key}`, `document.querySelector('[name="${key}"]')`);
  };
  const spec = () => browser.look("fetch('crawler/resource/books').then(answer => answer.json()).then(({ spec, run }) => ({ ...spec, run }))");
  const cells = () => browser.look("[...document.querySelectorAll('tbody tr')].map(row => [...row.cells].map(cell => cell.textContent).join(' | '))");

  await browser.go(`${master}/#/resources/books/settings`);
  await browser.until("what is set", "find('tbody th', 'params') && find('tbody td', 'start=')");
  const before = await spec();
  await browser.press("button", "Change settings");
  await browser.press("button", "Review");
  await browser.until("that nothing is different", "find('.fault', 'nothing is different')");

  await add("crawl.delay_ms");
  await browser.type("input[name='crawl.delay_ms']", "soon");
  await browser.press("button", "Review");
  await browser.until("what a delay is", "find('.fault', 'delay is a number with a unit')");
  await browser.type("input[name='crawl.delay_ms']", "1m 30s");
  await add("limits.memory");
  await browser.type("input[name='limits.memory']", "32MiB");
  await add("labels");
  await browser.type("textarea[name=labels]", "team=shop");
  await browser.press("button", "Review");
  await browser.until("what is different", "find('caption', 'Changes') || find('tbody th', 'delay')");
  assert.deepEqual(await cells(), [
    "delay | default | 1m 30s | for pages taken from then on",
    "memory | default | 32MiB | for pages taken from then on",
    "labels | default | team=shop | at once",
  ]);
  assert.deepEqual(await spec(), before, "nothing is changed before its reader says so");
  await browser.press("button", "Back");
  await browser.until("what was typed", "document.querySelector(\"input[name='crawl.delay_ms']\").value === '1m 30s'");
  await browser.press("button", "Review");
  await browser.press(".main", "Change");
  await note("good", "Change the settings of books: done");
  await browser.until("what is set now", "find('tbody td', '1m 30s') && find('tbody td', 'team=shop') && find('tbody td', '32MiB')");
  const { labels: _, ...others } = before;
  assert.deepEqual(await spec(), { ...others, crawl: { ...before.crawl, delay_ms: 90_000 }, limits: { ...before.limits, memory: 32 * 2 ** 20 }, labels: { team: "shop" } });

  // The master decides what a value is, and what was typed stays.
  await browser.press("button", "Change settings");
  await browser.type("input[name='crawl.delay_ms']", "20d");
  await browser.press("button", "Review");
  await browser.press(".main", "Change");
  await note("bad", "delay");
  await browser.press("button", "Back");
  // An empty text is the default.
  await browser.type("input[name='crawl.delay_ms']", " ");
  await browser.press("button", "Review");
  await browser.until("the default", "find('tbody td', 'default')");
  assert.deepEqual(await cells(), ["delay | 1m 30s | default | for pages taken from then on"]);

  // What somebody else changes meanwhile is not undone.
  await browser.look(`fetch("crawler/resource/books", { method: "PATCH", body: '{"crawl":{"max_pages":77}}',
    headers: { "content-type": "application/json" } }).then(answer => answer.status)`);
  await browser.press(".main", "Change");
  await note("bad", "changed");
  assert.equal((await spec()).crawl.max_pages, 77);
  await browser.press("button", "Back");
  await browser.press("button", "Cancel");
  await browser.until("what they have set", "find('tbody td', '77')");

  // Params wait for a new run, which is offered alone.
  await browser.press("button", "Change settings");
  const params = await browser.look("document.querySelector('textarea[name=params]').value");
  await browser.type("textarea[name=params]", `${params}\nnote=from the page`);
  await browser.press("button", "Review");
  await browser.until("when params hold", "find('tbody td', 'with a new run')");
  assert.equal(await browser.look("Boolean(find('.main', 'Change'))"), false);
  await browser.press("button", "Change and restart");
  await note("good", "Change and restart books: done");
  await browser.until("the param", "find('tbody td', 'note=from the page')");
  const after = await spec();
  assert.deepEqual([after.run, after.params], [before.run + 1, { ...before.params, note: "from the page" }]);
  browser.judge(master);
});
