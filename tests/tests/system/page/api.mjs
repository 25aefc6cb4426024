// Calls of a master whose answers break off in their bodies.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

// A name that ends with `.js` is a module for a browser, but for Node.js only within a package.
const source = readFileSync(new URL("../../../../host/api/src/http/page/api.js", import.meta.url));
const { change, get, lines, Problem } = await import(`data:text/javascript;base64,${source.toString("base64")}`);

globalThis.sessionStorage ??= { getItem: () => null };

const WORDS = "the answer broke off before its end";
const AGAIN = "see that the process runs, and ask for it again";

// Has every answer begin, and break off once `onRead` was called. Returns the options of the calls.
function breakOff(onRead = () => {}) {
  const calls = [];
  globalThis.fetch = async (_path, options) => {
    calls.push(options);
    let isBegun = false;
    const pull = controller => {
      if (!isBegun) controller.enqueue(new TextEncoder().encode('{"resources":\n['));
      else {
        onRead();
        controller.error(options.signal.aborted ? options.signal.reason : new TypeError("cut off"));
      }
      isBegun = true;
    };
    return new Response(new ReadableStream({ pull }));
  };
  return calls;
}

const faultOf = call => call.then(() => assert.fail("the call was answered"), fault => fault);

test("a look whose answer breaks off may be whole later", async () => {
  breakOff();
  const fault = await faultOf(get("crawler/resource"));
  assert.ok(fault instanceof Problem && fault.mayPass, String(fault));
  assert.deepEqual([fault.message, fault.hint], [WORDS, "see that the process runs"]);
});

test("a change whose answer breaks off keeps its key", async () => {
  const calls = breakOff();
  for (let n = 0; n < 2; n += 1) {
    const fault = await faultOf(change("POST", "crawler/resource/books/pause"));
    assert.ok(fault instanceof Problem && fault.mayPass, String(fault));
    assert.deepEqual([fault.message, fault.hint], [WORDS, AGAIN]);
  }
  const [key, again] = calls.map(options => options.headers["idempotency-key"]);
  assert.ok(key && key === again);
});

test("a stream that breaks off may be whole later", async () => {
  breakOff();
  const read = async () => {
    for await (const line of lines("crawler/resource/books/items")) assert.equal(line, '{"resources":');
  };
  const fault = await faultOf(read());
  assert.ok(fault instanceof Problem && fault.mayPass, String(fault));
  assert.equal(fault.message, WORDS);
});

test("a reader who has left is told of no broken answer", async () => {
  for (const ask of [signal => get("crawler/resource", {}, signal), signal => change("POST", "crawler/node/a/drain", {}, {}, signal)]) {
    const leaving = new AbortController();
    breakOff(() => leaving.abort());
    const fault = await faultOf(ask(leaving.signal));
    assert.equal(fault, leaving.signal.reason);
  }
});
