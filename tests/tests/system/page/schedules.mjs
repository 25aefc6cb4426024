// The schedule of a resource: set at intervals and at times, refused where it is none, listed, and removed.

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
  await browser.type("input[name=every]", "90m");
  await choose("While a run goes on", "queue");
  await browser.press("button", "Set the schedule");
  await note("good", "Set the schedule of books: done");
  await browser.until("the interval", "find('.figures div', 'every 1h 30m') && find('.figures div', 'queue')");

  await browser.press("header nav a", "Schedules");
  await browser.until("a row", "find('tbody th', 'books') && find('tbody code', 'every 1h 30m')");
  await browser.text("Resources of this page: 1; with a schedule: 1.");
  await browser.press("tbody th a", "books");

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

  await browser.press("button", "Remove the schedule");
  await browser.press("dialog button", "Remove");
  await note("good", "Remove the schedule of books: done");
  await browser.text("The resource has no schedule");
  browser.judge(master);
});
