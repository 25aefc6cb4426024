// From the first visit to the items of a crawl, and through all views, with a wide window or on a phone.

import assert from "node:assert/strict";
import { PHONE, walk, WIDE } from "./browser.mjs";

// Has the log of every resource be one that never rests.
const BUSY_LOG = `
  window.whole = window.fetch;
  window.fetch = async (path, options) => {
    if (!path.includes("/logs")) return whole(path, options);
    let number = 0;
    const pull = async controller => {
      await new Promise(done => setTimeout(done, 20));
      if (options.signal.aborted) return controller.close();
      number += 1;
      const line = { run: 1, shard: 0, number, level: "info", message: "a busy crawl", url: "", rule: "", at: 1 };
      controller.enqueue(new TextEncoder().encode(JSON.stringify(line) + "\\n"));
    };
    return new Response(new ReadableStream({ pull }));
  };
  null`;

// Asks two questions at once, and notes the answers.
const TWO_QUESTIONS = `import("./page/dialog.js").then(({ confirm }) => {
  window.answers = [];
  for (const title of ["first?", "second?"]) {
    confirm({ title, text: "", verb: "Yes" }).then(answer => answers.push(title + Boolean(answer)));
  }
})`;

await walk(async (browser, master, start, form) => {
  const name = `books-${form}`;
  await browser.size(...(form === "phone" ? PHONE : WIDE));
  // What a row has to press says what it is about, for those who hear it without its row.
  const NAMELESS = "tbody :is(button, .button):not([aria-label])";
  // The list of a phone has fewer columns, but nothing is cut off at the side.
  const fits = async () => browser.fits(await browser.look("location.hash"));

  await browser.go(`${master}/`);
  await browser.text("There is no resource yet");
  await browser.until("a live stream", "find('.stream.live')");
  await fits();
  await browser.press("a.button", "Add a resource");
  await browser.type("input[name=name]", name);
  await browser.type("input[name=plugin]", "puppet");
  await browser.type("textarea[name=others]", `start=${start}`);
  await fits();
  await browser.press("form.add button", "Add");

  await browser.until("the end of the crawl", "find('h1 .phase.finished')");
  await browser.until("a chart", "document.querySelector('.chart canvas')");
  await fits();
  await browser.look("window.head = document.querySelector('main h1'); null");
  await browser.press(".tabs a", "Items");
  await browser.until("three items", "document.querySelectorAll('.items li').length === 3");
  await browser.text(`"depth": 2`);
  await fits();

  for (const [tab, text] of [["Errors", "Answers by status"], ["Schedule", "The resource has no schedule"],
    ["Log", "Level"], ["Events", "placed"], ["Settings", start], ["Now", "Shards"]]) {
    await browser.press(".tabs a", tab);
    await browser.text(text);
    await fits();
  }
  // Lines that come without a pause are shown while they come.
  await browser.look(BUSY_LOG);
  await browser.press(".tabs a", "Log");
  await browser.until("a line of a busy log", "find('td', 'a busy crawl')");
  await browser.look("window.fetch = window.whole; null");
  // The view of the resource is the same on all its sides, so that its chart goes on.
  assert.equal(await browser.look("window.head === document.querySelector('main h1')"), true);
  await browser.press(".tabs a", "Frontier");
  await browser.type("input[name=url]", start);
  await browser.press("form.filters button", "Ask");
  await browser.until("an answer", "find('.answer', 'done')");
  await browser.until("its host", `find('th', ${JSON.stringify(new URL(start).host)})`);

  for (const [view, text] of [["Resources", name], ["Schedules", "No resource here has a schedule"], ["Hosts", "Name the resource"],
    ["Plugins", "puppet"], ["Nodes", "worker-1"], ["Overview", "Leader"]]) {
    await browser.press("header nav a", view);
    await browser.text(text);
    await fits();
    for (const none of [".fault", NAMELESS]) {
      assert.equal(await browser.look(`document.querySelectorAll(${JSON.stringify(none)}).length`), 0, `${view}: ${none}`);
    }
  }

  // The keyboard alone filters a list and leaves a question.
  await browser.press("header nav a", "Resources");
  await browser.until("the list", `find('tbody th', ${JSON.stringify(name)})`);
  await browser.key("/", 191);
  await browser.until("the focus in the filter", "document.activeElement.name === 'prefix'");
  await browser.press("tbody th a", name);
  await browser.press("button", "Delete");
  await browser.until("a question", "document.querySelector('dialog[open]')");
  await browser.key("Escape", 27);
  await browser.until("no question", "!document.querySelector('dialog')");

  await browser.look(TWO_QUESTIONS);
  await browser.until("the first question", "find('dialog h2', 'first?')");
  await browser.key("Escape", 27);
  await browser.until("the second question", "find('dialog h2', 'second?')");
  await browser.press("dialog button", "Yes");
  await browser.until("two answers", "answers.join() === 'first?false,second?true'");

  await browser.press("button", "Restart");
  await browser.press("dialog button", "Restart");
  await browser.until("the second run", "find('.figures div', 'Run')?.textContent === 'Run2'");

  // A run that begins meanwhile does not take the place of the items that are read.
  await browser.press(".tabs a", "Items");
  await browser.until("the items of the run", "document.querySelector('input[name=run]').value === '2'");
  await browser.press("button", "Restart");
  await browser.press("dialog button", "Restart");
  await browser.text("Run 3 has begun");
  assert.equal(await browser.look("document.querySelector('input[name=run]').value"), "2");
  await browser.press("button", "Show run 3");
  await browser.until("the items of the next run", "document.querySelector('input[name=run]').value === '3'");
  await browser.press("button", "Delete");
  await browser.press("dialog button", "Delete");
  await browser.text("No resource passes the filters");
  const lists = browser.requests.filter(url => url.includes("phase="));
  assert.deepEqual(lists, [], "the master has to look at every resource for a list of a phase");
  browser.judge(master);
});
