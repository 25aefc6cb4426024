// The schedule of a resource: set at intervals and at times, refused where it is none, listed, and removed.

import assert from "node:assert/strict";
import { walk, WIDE } from "./browser.mjs";

await walk(async (browser, master) => {
  await browser.size(...WIDE);
  const choose = async (label, value) => {
    const select = `find('form label', ${JSON.stringify(label)}).querySelector('select')`;
    await browser.until(`a choice of ${label}`, `Boolean(${select})`);
    await browser.look(`(() => {
      const select = ${select};
      select.value = ${JSON.stringify(value)};
      select.dispatchEvent(new Event("change", { bubbles: true }));
    })()`);
  };
  const note = async (kind, text) => {
    await browser.until(`a note with ${text}`, `find('.notes .${kind}', ${JSON.stringify(text)})`);
    await browser.press(".notes button");
    await browser.until("no note", "!find('.notes p')");
  };

  await browser.go(`${master}/#/resources/books/schedule`);
  await browser.text("The resource has no schedule");
  await browser.until("the first run", "find('tbody td', 'finished')");
  await choose("Begin runs", "every");
  await browser.type("input[name=every]", "soon");
  await browser.press("button", "Set the schedule");
  await note("bad", "an interval is a number with a unit");
  await browser.type("input[name=every]", "0s");
  await browser.press("button", "Set the schedule");
  await note("bad", "an interval is longer than 0s");
  await browser.type("input[name=every]", "90m");
  await choose("While a run goes on", "queue");
  await browser.press("button", "Set the schedule");
  await note("good", "Set the schedule of books: done");
  await browser.until("the interval", "find('.figures div', 'every 1h 30m') && find('.figures div', 'queue')");

  await browser.press("header nav a", "Schedules");
  await browser.until("a row", "find('tbody th', 'books') && find('tbody code', 'every 1h 30m')");
  // The run is over, so that its phase does not tell of a pause.
  assert.equal(await browser.look("Boolean(find('tbody .acts button'))"), false);
  await browser.press("tbody th a", "books");

  await browser.press(".buttons button", "Pause");
  await note("good", "Pause books: done");
  await browser.until("the way back", "find('.buttons button', 'Resume') && find('h1 .phase', 'Finished')");
  await browser.text("its due times start nothing");
  await browser.press("header nav a", "Schedules");
  await browser.press("tbody .acts button", "Resume");
  await note("good", "Resume books: done");
  await browser.until("no button for what is over", "find('tbody th', 'books') && !find('tbody .acts button')");
  await browser.press("tbody th a", "books");
  await browser.until("the way to a pause", "find('.buttons button', 'Pause') && !find('.buttons button', 'Resume')");

  await choose("Begin runs", "cron");
  await browser.type("input[name=cron]", "0 3 * * *");
  await browser.type("input[name=tz]", "Europe/Paris");
  await browser.press("button", "Replace the schedule");
  await note("good", "Set the schedule of books: done");
  await browser.until("the next due time there", "find('.figures div', 'Due in Europe/Paris')");
  // The master decides what a time is, and what was set stays.
  await browser.type("input[name=cron]", "61 3 * * *");
  await browser.press("button", "Replace the schedule");
  await note("bad", "cron");
  await browser.until("what was set", "find('.figures div', '0 3 * * *')");

  // What somebody else sets does not take the place of what is typed, unless the reader asks for it.
  await browser.type("input[name=cron]", "0 5 * * *");
  await browser.look(`fetch("crawler/resource/books/schedule", { method: "PUT", body: '{"cron":"0 4 * * *"}',
    headers: { "content-type": "application/json" } }).then(answer => answer.status)`);
  await browser.until("a word of the change", "find('p', 'The schedule was changed meanwhile')");
  assert.equal(await browser.look("document.querySelector('input[name=cron]').value"), "0 5 * * *");
  await browser.press("button", "Load it into the form");
  await browser.until("the schedule of somebody else", "document.querySelector('input[name=cron]').value === '0 4 * * *'");
  await browser.until("no word of a change", "!find('p', 'The schedule was changed meanwhile')");

  // One that the master cannot read can be replaced and removed. Zones that the browser does not know are left out.
  await browser.look(`window.whole = fetch; window.fetch = (path, options) =>
    path.endsWith("books/schedule") && options.method === "GET"
      ? Response.json({ detail: "written by a later version" }, { status: 412 }) : whole(path, options); null`);
  await browser.until("why it is not shown", "find('.fault', 'written by a later version') && find('button', 'Remove the schedule')");
  await browser.press("button", "Replace the schedule");
  await note("good", "Set the schedule of books: done");
  await browser.look("window.fetch = whole; null");
  await browser.until("it again", "find('.figures div', '0 4 * * *')");
  const inZones = `import("./page/format.js").then(({ time }) => ["Mars/Base", "Europe/Paris"].map(zone => typeof time(1, zone)).join())`;
  assert.equal(await browser.look(inZones), "undefined,string");

  // An empty page behind others does not say that there is nothing at all.
  await browser.look(`window.fetch = async (path, options) => {
    if (!path.startsWith("crawler/schedule?")) return whole(path, options);
    if (path.includes("page_token=more")) return Response.json({ schedules: [], next_page_token: "" });
    return Response.json({ ...(await (await whole(path, options)).json()), next_page_token: "more" });
  }; null`);
  await browser.press("header nav a", "Schedules");
  await browser.press(".pager button", "Next");
  await browser.until("an empty page", "find('.pager', 'Page 2') && find('.blank')?.textContent === 'None on this page.'");
  await browser.look("window.fetch = whole; null");
  await browser.press(".pager button", "Back");
  await browser.press("tbody th a", "books");

  await browser.press("button", "Remove the schedule");
  await browser.press("dialog button", "Remove");
  await note("good", "Remove the schedule of books: done");
  await browser.text("The resource has no schedule");
  browser.judge(master);
});
