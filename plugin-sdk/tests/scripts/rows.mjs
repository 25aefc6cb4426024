// Stands behind the SDK, in one file with it: the boundary, and a page of many rows in many rows.

import assert from "node:assert/strict";

const N = 2000;
let looks = 0;

/** Counts what is looked at. */
function counted(numbers) {
    return new Proxy(numbers, {
        get(of, key) {
            if (typeof key === "string" && /^[0-9]+$/.test(key)) looks += 1;
            return Reflect.get(of, key);
        },
    });
}

let emitted;
const [config, lines] = [{}, {}];
const output = { emit: (kind, json) => (emitted = JSON.parse(json)) };

// Each second shelf has two books, the others have none. The last book has no title.
const shelfOf = Array.from({ length: N }, (_, n) => 2 * Math.floor(n / 2));
const titled = Array.from({ length: N - 1 }, (_, n) => n);
const spans = titled.flatMap((n) => [n % 2, (n % 2) + 1]);
const host = {
    extract: () => ({
        text: "ab",
        groups: [new Array(N).fill(NO_ROW), counted(shelfOf)],
        columns: [{ rows: counted(titled), spans }],
    }),
};

const rules = plugin({
    name: "shop",
    version: "0.1.0",
    items: { page: true },
    reads: { page: { shelves: rows("ul", { books: rows("li", { title: text("b").optional() }) }) } },
    root() {},
    rules: { page: (page, crawl) => crawl.emit("page", page.extract("page")) },
});
rules.parse(0);

const book = (n) => ({ title: n === N - 1 ? null : "ab"[n % 2] });
const booksOf = (shelf) => (shelf % 2 === 0 ? [book(shelf), book(shelf + 1)] : []);
assert.deepEqual(emitted, { shelves: Array.from({ length: N }, (_, shelf) => ({ books: booksOf(shelf) })) });
// Each number once or twice, and not once for each shelf.
assert.ok(looks <= 4 * N, `${looks} looks`);
process.stdout.write("as expected\n");
