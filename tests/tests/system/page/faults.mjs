// What stands in the way for a while: the page says truly whether it tries again, and does so.

import assert from "node:assert/strict";
import { walk } from "./browser.mjs";

// Cuts off the calls of a method whose paths have these words, until `window.fetch` is `whole` again.
const cutOff = (method, words) => `
  window.whole ??= fetch;
  window.fetch = async (path, options) => {
    if (options.method !== "${method}" || !path.includes("${words}")) return whole(path, options);
    throw new TypeError("cut off");
  };
  null`;
// Has nobody see the page, or somebody again. Returns the calls that are made at once.
const turn = isHidden => `(() => {
  const before = window.fetch;
  const calls = [];
  window.fetch = (path, options) => {
    calls.push(path);
    return before(path, options);
  };
  Object.defineProperty(document, "hidden", { value: ${isHidden}, configurable: true });
  document.dispatchEvent(new Event("visibilitychange"));
  window.fetch = before;
  return calls;
})()`;
const LET_THROUGH = "window.fetch = whole; null";

// Has the log of the resource be one that tells a line whenever it is opened, and then nothing. Its only shard is crawled by `owner`.
// `cut()` breaks streams of events that are opened from now on.
const LOG = `
  [window.nOpened, window.owner] = [0, "first-owner"];
  window.fetch = async (path, options) => {
    if (path.includes("/logs")) {
      nOpened += 1;
      const line = { run: 1, shard: 0, number: nOpened, level: "info", message: "line " + nOpened + ".", url: "", rule: "", at: nOpened };
      const start = controller => controller.enqueue(new TextEncoder().encode(JSON.stringify(line) + "\\n"));
      return new Response(new ReadableStream({ start }));
    }
    if (path === "crawler/events") {
      const broken = new AbortController();
      window.cut = () => broken.abort();
      options = { ...options, signal: AbortSignal.any([options.signal, broken.signal]) };
    }
    const answer = await whole(path, options);
    if (path !== "crawler/resource/books") return answer;
    const shards = [{ shard: 0, owner, epoch: 1, state: "assigned", counts: {}, reason: "", last_errors: [] }];
    return Response.json({ ...(await answer.json()), shards });
  };
  null`;

await walk(async (browser, master) => {
  await browser.size(1280, 900, false);
  await browser.go(`${master}/`);
  await browser.until("a live stream", "find('.stream.live')");

  // A list that is read once is read again after a fault that may pass, without its reader.
  await browser.look(cutOff("GET", "crawler/plugin"));
  await browser.press("header nav a", "Plugins");
  await browser.until("the promise of the page", "find('.fault', 'the page tries again')");
  await browser.look(LET_THROUGH);
  await browser.until("the plugin", "find('tbody th', 'puppet') && !find('.fault')");

  // A list that is read once is not read again because its reader comes back, unless it could not be read before.
  await browser.look(turn(true));
  assert.deepEqual(await browser.look(turn(false)), ["crawler/events"]);
  await browser.look(turn(true));
  await browser.look("location.hash = '#/plugins/puppet'; null");
  await browser.until("a view that waits for its reader", "find('h1', 'puppet') && find('.blank', 'Loading')");
  await browser.look(turn(false));
  await browser.until("the plugin", "find('h2', 'Params')");

  // A change is asked for again by the reader alone.
  await browser.go(`${master}/#/resources/books`);
  await browser.until("the resource", "find('h1', 'books')");
  await browser.look(cutOff("POST", "crawler/resource"));
  await browser.press("button", "Pause");
  await browser.until("the way out", "find('.notes .bad', 'ask for it again')");
  assert.equal(await browser.look("find('.notes', 'the page tries again') === undefined"), true);

  // The log of a shard that has moved is read where it is crawled now, and no line goes.
  await browser.look(LOG);
  await browser.look(turn(true));
  await browser.look(turn(false));
  await browser.until("its owner", "find('td', 'first-owner')");
  await browser.press(".tabs a", "Log");
  await browser.until("a line", "find('td', 'line 1.')");
  await browser.look("owner = 'next-owner'; null");
  await browser.until("a line of the next owner beside it", "find('td', 'line 2.') && find('td', 'line 1.')");

  // A log whose connection may be dead is opened again with the stream of events.
  await browser.look("cut(); null");
  await browser.until("a line that came with the stream", "find('td', 'line 3.') && find('td', 'line 1.')");
  await browser.look(LET_THROUGH);
  browser.judge(master);
});
