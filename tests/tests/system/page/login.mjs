// A master that asks for tokens: a wrong one is refused, a right one stays for as long as the tab, and the master decides what
// its role may do.

import assert from "node:assert/strict";
import { walk } from "./browser.mjs";

// Makes a call with a token that is not the present one any more when the answer comes.
const LATE_REFUSAL = `import("./page/api.js").then(({ get, keepToken }) => {
  const present = sessionStorage.getItem("crawler-token");
  keepToken("crawler_old");
  const late = get("crawler/access/caller").catch(fault => fault.status);
  keepToken(present);
  return late;
})`;

// Returns the keys of changes that get no answer: twice of the same one, of another, and of the first one a minute later. Then those
// of one that is refused twice because there are too many calls.
const KEYS = `import("./page/api.js").then(async ({ change }) => {
  const [whole, keys] = [window.fetch, []];
  window.fetch = async (path, options) => {
    if (options.method === "GET") return whole(path, options);
    keys.push(options.headers["idempotency-key"]);
    if (path.endsWith("resume")) return Response.json({ detail: "too many calls" }, { status: 429 });
    throw new TypeError("cut off");
  };
  const ask = act => change("POST", "crawler/resource/books/" + act).catch(() => {});
  for (const act of ["restart", "restart", "pause"]) await ask(act);
  const now = performance.now;
  performance.now = () => now.call(performance) + 60_000;
  await ask("restart");
  performance.now = now;
  for (const act of ["resume", "resume"]) await ask(act);
  window.fetch = whole;
  return keys;
})`;

// Has the master be busy for every change, and tell of many resources of a phase once `held` is fulfilled. Notes the changes.
const BUSY = `
  window.whole = fetch;
  [window.changes, window.isAsked, window.held] = [[], false, Promise.resolve()];
  window.fetch = async (path, options) => {
    if (options.method !== "GET") {
      changes.push(path);
      return Response.json({ detail: "busy" }, { status: 503 });
    }
    if (!path.includes("phase=")) return whole(path, options);
    isAsked = true;
    await held;
    const names = Array.from({ length: 50 }, (_, i) => path.includes("running") ? "r" + i : "p" + i);
    return Response.json({ resources: names.map(name => ({ spec: { name } })), next_page_token: "" });
  };
  null`;
const HOLD = "window.held = new Promise(done => (window.release = done)); window.isAsked = false; null";

await walk(async (browser, master, viewer, team) => {
  await browser.size(1280, 900, false);
  const logIn = async token => {
    await browser.type("input[name=token]", token);
    await browser.press("button", "Log in");
  };
  await browser.go(`${master}/`);
  await browser.text("asks for an access token");
  await logIn("crawler_wröng");
  await browser.until("a refusal before any call", "find('.fault', 'characters that no token has')");
  await logIn("crawler_wrong");
  await browser.until("a refusal", "find('.fault') && !find('.fault', 'characters')");
  await browser.until("no token", "sessionStorage.length === 0");
  await browser.look("window.whole = fetch; window.fetch = async () => { throw new TypeError('cut off'); }; null");
  await logIn(viewer);
  await browser.until("a fault", "find('.fault', 'does not answer')");
  await browser.until("no token that nobody has checked", "sessionStorage.length === 0");
  await browser.look("window.fetch = whole; null");
  await logIn(viewer);
  await browser.until("a live stream", "find('.stream.live')");
  await browser.text("reader");
  await browser.reload();
  await browser.until("the list again", "find('.stream.live')");
  assert.equal(await browser.look("localStorage.length + document.cookie.length"), 0);

  await browser.go(`${master}/#/resources/books`);
  await browser.press("button", "Pause");
  await browser.until("a refusal in the words of the master", "find('.notes .bad', 'operator')");

  const refused = what => `find('.notes .bad', ${JSON.stringify(what)})?.textContent.includes('operator')`;
  await browser.press(".tabs a", "Schedule");
  await browser.press("button", "Replace the schedule");
  await browser.until("a refusal to set a schedule", refused("Set the schedule of books"));
  await browser.press("button", "Remove the schedule");
  await browser.press("dialog button", "Remove");
  await browser.until("a refusal to remove it", refused("Remove the schedule of books"));

  assert.equal(await browser.look(LATE_REFUSAL), 401);
  const [first, again, other, later, ...busy] = await browser.look(KEYS);
  assert.ok(first && first === again, "a change without an answer keeps its key");
  assert.equal(new Set([first, other, later, ...busy]).size, 5, "a new wish has a new key");

  // What one reader has begun does not go on as the next one: neither its changes nor its questions.
  await browser.go(`${master}/#/resources`);
  await browser.until("the list", "find('tbody th', 'books')");
  assert.equal(await browser.look("find('tbody .acts button').getAttribute('aria-label')"), "Pause books");
  // What could not be done stays ticked.
  await browser.press("tbody .tick input");
  await browser.press("button", "Pause ticked (1)");
  await browser.until("a refusal, and a tick", "find('.notes .bad', '1 of them not') && find('button', 'Pause ticked (1)')");
  await browser.look(BUSY);
  const next = async () => {
    await browser.press("button", "Log out");
    await browser.text("asks for an access token");
    const nChanges = await browser.look("changes.length");
    await logIn(viewer);
    await browser.until("the list of the next reader", "find('tbody th', 'books')");
    return nChanges;
  };
  const quiet = async nChanges => {
    await browser.until("an end of what was begun", "find('button', 'Pause all that pass')");
    assert.equal(await browser.look("changes.length"), nChanges, "changes of the reader before");
    assert.equal(await browser.look("document.querySelectorAll('dialog, .notes p').length"), 0);
  };
  await browser.press("button", "Pause all that pass");
  await browser.press("dialog button", "Pause");
  await browser.until("the first changes", "changes.length >= 8");
  const nChanges = await next();
  await quiet(nChanges);
  await browser.look(HOLD);
  await browser.press("button", "Pause all that pass");
  await browser.until("a search for resources", "isAsked");
  await next();
  await browser.look("release(); null");
  await quiet(nChanges);
  await browser.look("window.fetch = whole; null");

  // The refusal of a token of before has not logged the reader out.
  await browser.press("button", "Log out");
  await browser.text("asks for an access token");
  assert.equal(await browser.look("sessionStorage.length"), 0);

  // A token of a namespace sees its schedules only.
  await browser.go(`${master}/#/schedules`);
  await logIn(team);
  await browser.until("a schedule of the team", "find('tbody th', 'team/books')");
  assert.deepEqual(await browser.look("[...document.querySelectorAll('tbody th')].map(one => one.textContent)"), ["team/books"]);
  assert.ok(browser.requests.every(url => !url.includes(viewer)), "a token is in no address");
  browser.judge(master);
});
