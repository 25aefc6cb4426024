// Stands behind the SDK, in one file with it: a boundary that notes what is followed, and bodies that are kept.

import assert from "node:assert/strict";

const followed = [];
const config = {};
const lines = { write() {}, panic() {} };
const output = { follow: (requests) => followed.push(requests[0].hints) };
const host = { metadata: () => metadata };
let metadata = [];

/** Calls a rule that follows an address with these options; returns the hints of its request, and the kept body. */
function call(options) {
    followed.length = 0;
    let kept;
    const rules = plugin({
        name: "album",
        version: "0.1.0",
        root() {},
        rules: {
            page(page, crawl) {
                kept = page.kept;
                crawl.follow("/7.png", "page", options);
            },
        },
    });
    rules.parse(0);
    return [followed[0], kept];
}

assert.deepEqual(call({}), [[], null]);
assert.deepEqual(call({ keepBody: false })[0], []);
const both = call({ acceptStatus: 404, keepBody: true })[0];
assert.deepEqual(both, [["accept-status", "404"], ["keep-body", "true"]]);
metadata = [["body-bytes", "4"], ["kept-digest", "ab12"], ["kept-bytes", "3"]];
assert.deepEqual(call({})[1], { digest: "ab12", size: 3, mediaType: null });
metadata.push(["kept-type", "image/png"]);
assert.deepEqual(call({})[1], { digest: "ab12", size: 3, mediaType: "image/png" });
for (const unfit of ["true", 1, null]) {
    assert.throws(() => call({ keepBody: unfit }), (error) => error.val[1].includes("keepBody is true or false"));
}
process.stdout.write("as expected\n");
