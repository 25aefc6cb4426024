// Every view in the colours and at the width that the arguments name, as axe judges it by the levels A and AA of WCAG 2: nothing that
// axe calls serious or critical. Nothing is wider than the window.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { PHONE, walk, WIDE } from "./browser.mjs";

const GRAVE = ["serious", "critical"];

// Returns what is wrong with the page as it is shown, as texts, and the number of rules that it keeps.
const JUDGE = `axe.run(document, { runOnly: { type: "tag", values: ["wcag2a", "wcag2aa"] } }).then(({ violations, passes }) => ({
  nKept: passes.length,
  faults: violations.filter(({ impact }) => ${JSON.stringify(GRAVE)}.includes(impact)).flatMap(({ id, nodes }) =>
    nodes.map(({ target, failureSummary }) => id + ": " + target.join(" ") + ": " + failureSummary)),
}))`;

// Has the master refuse every call, as one that asks for a token.
const LOCK = `
  window.fetch = async () => Response.json({ detail: "a token is missing", hint: "log in" }, { status: 401 });
  location.hash = "#/plugins";
  null`;

// Views, each with an expression that is true once it is there. `bad` is a URL that was given up.
const views = bad => [
  ["", "find('.figures dt', 'Leader')"],
  ["add", "find('form.add button')"],
  ["resources", "find('tbody th', 'broken')"],
  ["resources/books", "document.querySelector('.chart canvas') && find('tbody th', '0')"],
  [`resources/broken/frontier?url=${encodeURIComponent(bad)}`, "find('.answer', 'dead') && find('[aria-label=\"URLs of the frontier\"] td')"],
  ["resources/broken/errors", "find('[aria-label^=\"Dead letters\"] a')"],
  ["resources/books/items", "find('.items pre')"],
  ["resources/broken/errors?reason=rule-error", "find('[aria-label=\"Pages given up\"] summary')"],
  ["resources/books/items?show=fields", "find('progress')"],
  ["resources/books/items?show=changes", "find('.mark.changed') && find('.items td .value')"],
  ["resources/books/schedule", "find('.figures div', 'Due in Europe/Paris') && find('tbody th', '2')"],
  ["resources/books/schedule?before=1&after=2", "find('thead th', 'Difference')"],
  ["resources/broken/schedule", "find('.blank', 'no schedule')"],
  ["resources/broken/logs", "find('td', 'no rule is called')"],
  ["resources/books/events", "find('td', 'placed')"],
  ["resources/books/settings", "find('button', 'Change settings')"],
  ["resources/nobody", "find('.fault')"],
  ["schedules", "find('tbody th', 'books')"],
  ["hosts?resource=books", "find('tbody th')"],
  ["plugins", "find('tbody th', 'puppet')"],
  ["plugins/puppet", "find('h2', 'Params')"],
  ["nodes", "find('tbody th', 'worker-1')"],
  ["nowhere", "find('h1', 'Nothing is here')"],
];

await walk(async (browser, master, library, colours, form, bad) => {
  const axe = await readFile(library, "utf8");
  await browser.size(...(form === "phone" ? PHONE : WIDE));
  await browser.colours(colours);
  // axe makes functions of texts, which the policy of the page forbids.
  await browser.liftPolicy();
  await browser.go(`${master}/`);
  await browser.until("a live stream", "find('.stream.live')");
  await browser.look(`${axe}; null`);
  const judge = async what => {
    const { nKept, faults } = await browser.look(JUDGE);
    assert.ok(nKept > 5, `${what}: ${nKept} rules are kept, so that axe has seen nothing`);
    return faults;
  };
  const check = async what => {
    await browser.fits(what);
    assert.deepEqual(await judge(what), [], `${what}, ${colours}, ${form}`);
  };

  for (const [view, isThere] of views(bad)) {
    await browser.go(`${master}/#/${view}`);
    // The title is set once the view is there, so that nothing of the one before is judged.
    const [path] = view.split("?");
    const title = JSON.stringify(path ? `${path} · Crawler` : "Crawler");
    await browser.until(`the view ${view}`, `document.title === ${title} && ${isThere} && !find('.blank', 'Loading')`);
    await check(view);
  }
  // A button without a name is found, so that axe looks where the views are.
  await browser.look("document.querySelector('main').append(document.createElement('button')); null");
  assert.equal((await judge("a fault")).length, 1);
  await browser.look("document.querySelector('main > button').remove(); null");

  await browser.go(`${master}/#/resources/books/settings`);
  await browser.press("button", "Change settings");
  await browser.until("the form", "find('form.add select')");
  await check("the form of settings");
  await browser.type("textarea[name=params]", "start=x");
  await browser.press("button", "Review");
  await browser.until("what is different", "find('thead th', 'Then')");
  await check("the preview of settings");

  await browser.go(`${master}/#/resources/books`);
  await browser.press("button", "Delete");
  await browser.until("a question", "document.querySelector('dialog[open]')");
  await check("a question");
  await browser.key("Escape", 27);
  // Another walk may have paused it.
  await browser.press("button", await browser.look("find('button', 'Resume') ? 'Resume' : 'Pause'"));
  await browser.until("a note", "find('.notes p', 'done')");
  await check("a note");
  await browser.look(LOCK);
  await browser.until("the question for a token", "find('input[name=token]')");
  await check("the question for a token");
});
