// Stands behind the SDK, in one file with it: a boundary that notes the priorities of requests.

import assert from "node:assert/strict";

const followed = [];
const config = {};
const lines = { write() {}, panic() {} };
const output = { follow: (requests) => followed.push(requests[0].priority) };
const host = {};

/** Calls a rule that follows an address with this priority. */
function call(priority) {
    const page = (_, crawl) => crawl.follow("/7", "page", { priority });
    plugin({ name: "shop", version: "0.1.0", root() {}, rules: { page } }).parse(0);
}

const fit = [undefined, -(2 ** 31), -1, 0, 1, 2 ** 31 - 1];
fit.forEach(call);
assert.deepEqual(followed, [0, ...fit.slice(1)]);
for (const unfit of [-(2 ** 31) - 1, 2 ** 31, 2 ** 32, 1.5, NaN, Infinity, "1", null]) {
    const why = `priority is a whole number of 32 bits, not ${unfit}`;
    assert.throws(() => call(unfit), (error) => error.val[1].includes(why));
}
assert.equal(followed.length, fit.length);
process.stdout.write("as expected\n");
