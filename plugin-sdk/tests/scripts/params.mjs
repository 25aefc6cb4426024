// Stands behind the SDK, in one file with it: the boundary, which is not called, and plugins that declare params.

import assert from "node:assert/strict";

const [config, lines, output, host] = [{}, {}, {}, {}];

const described = (parts) =>
    plugin({ name: "shop", version: "0.1.0", root() {}, rules: { page() {} }, ...parts }).describe().hints;

assert.deepEqual(described({}), []);
assert.deepEqual(described({ params: {} }), [
    ["params", '{"type":"object","properties":{},"required":[],"additionalProperties":false}'],
]);
const params = {
    start: { about: "First £ page", default: "http://shop.test/" },
    login: { about: "Account name" },
    pages: { about: "Number of pages", optional: true },
};
const schema =
    '{"type":"object","properties":{"start":{"type":"string","description":"First £ page","default":"http://shop.test/"},' +
    '"login":{"type":"string","description":"Account name"},"pages":{"type":"string","description":"Number of pages"}},' +
    '"required":["login"],"additionalProperties":false}';
assert.deepEqual(described({ params }), [["params", schema]]);

const about = "Number of pages";
for (const [param, message] of [
    [{ default: "1" }, 'param "pages": about is missing: one sentence that tells what it is for'],
    [{ about: " " }, 'param "pages": about is missing: one sentence that tells what it is for'],
    [{ abuot: about }, 'param "pages": unknown key "abuot"; the keys are about, default, optional'],
    [{ about, default: 10 }, 'param "pages": default is a string, not 10'],
    [{ about, default: null }, 'param "pages": default is a string, not null'],
    [{ about, optional: "yes" }, 'param "pages": optional is true or false, not "yes"'],
    [
        { about, default: "10", optional: true },
        'param "pages": one with a default is never missing; leave out optional or default',
    ],
    [about, 'param "pages": it is declared by an object: { about: "…" }'],
]) {
    assert.throws(() => described({ params: { pages: param } }), { name: "TypeError", message });
}
assert.throws(() => described({ params: { "a=b": { about } } }), TypeError);
process.stdout.write("as expected\n");
