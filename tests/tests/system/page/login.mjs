// A master that asks for tokens: a wrong one is refused, a right one stays for as long as the tab, and the master decides what
// its role may do.

import assert from "node:assert/strict";
import { walk } from "./browser.mjs";

await walk(async (browser, master, viewer) => {
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

  await browser.press("button", "Log out");
  await browser.text("asks for an access token");
  assert.equal(await browser.look("sessionStorage.length"), 0);
  assert.ok(browser.requests.every(url => !url.includes(viewer)), "a token is in no address");
  browser.judge(master);
});
