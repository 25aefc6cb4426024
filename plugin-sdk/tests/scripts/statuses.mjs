// Stands behind the SDK, in one file with it: a boundary that notes what is followed, and requests for statuses.

import assert from "node:assert/strict";

const followed = [];
const config = {};
const lines = { write() {}, panic() {} };
const output = {
    follow: (requests) => followed.push(requests[0].hints),
    followField: (plan, field, rule, options) => followed.push(options.hints),
};
const host = {
    referrer: () => undefined,
    extract: () => ({ text: "", groups: [], columns: [{ rows: [], spans: [] }] }),
};

/** Calls a rule that follows an address and links with these statuses; returns the hints of each. */
function hints(options) {
    followed.length = 0;
    const rules = plugin({
        name: "shop",
        version: "0.1.0",
        reads: { page: { links: links("a") } },
        root() {},
        rules: {
            page(page, crawl) {
                assert.equal(page.referrer, null);
                crawl.follow("/x", "page", options);
                crawl.follow(page.extract("page").links, "page", options);
            },
        },
    });
    rules.parse(0);
    assert.deepEqual(followed[0], followed[1]);
    return followed[0];
}

assert.deepEqual(hints({}), []);
assert.deepEqual(hints({ acceptStatus: [] }), []);
assert.deepEqual(hints({ acceptStatus: null }), []);
assert.deepEqual(hints({ acceptStatus: 404 }), [["accept-status", "404"]]);
assert.deepEqual(hints({ acceptStatus: "any" }), [["accept-status", "any"]]);
assert.deepEqual(hints({ acceptStatus: [404, "500-599"] }), [["accept-status", "404,500-599"]]);
for (const unfit of [true, 4.04, [null], [undefined]]) {
    assert.throws(() => hints({ acceptStatus: unfit }), (error) => error.val[1].includes("acceptStatus is a number"));
}
process.stdout.write("as expected\n");
