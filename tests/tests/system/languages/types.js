// @ts-check
// Rules that use each type, right and wrong. A line below `@ts-expect-error` has to be an error.

import { RuleError, attr, links, log, plugin, present, rows, skip, text } from "./crawler.js";

export const rules = plugin({
    name: "types",
    version: "0.1.0",
    params: { start: { about: "Address of the first page", default: "http://shop.test/" } },
    items: { book: true, shelf: { type: "object" } },
    reads: {
        list: {
            next: links("li.next a").withinHost(),
            books: rows("article", {
                title: text("h3"),
                stars: attr("p", "data-stars").map(Number).optional(),
                tags: text("li").all(),
                isNew: present("b"),
                isOld: present("b").map((isThere) => (isThere ? "no" : "yes")),
            }),
            price: text("p.price").map((words) => words.length).otherwise("free"),
        },
    },

    root(crawl) {
        crawl.follow(crawl.param("start"), "list", { acceptStatus: [404, "500-599"], headers: { "x-n": 1 } });
    },

    rules: {
        list(page, crawl) {
            const { next, books, price } = page.extract("list");
            /** @type {string | undefined} */
            const title = books[0]?.title;
            /** @type {number | null | undefined} */
            const stars = books[0]?.stars;
            /** @type {string[] | undefined} */
            const tags = books[0]?.tags;
            /** @type {boolean | undefined} */
            const isNew = books[0]?.isNew;
            /** @type {string | undefined} */
            const isOld = books[0]?.isOld;
            /** @type {number | string} */
            const either = price;
            crawl.follow(next, "list", { priority: 1 });
            crawl.follow(next.matching("^http:").notMatching("c$"), "list");
            crawl.emit("book", { title, stars, tags, isNew, isOld, either });
            /** @type {import("./crawler.js").Kept | null} */
            const kept = page.kept;
            if (kept) {
                /** @type {[string, number, string | null]} */
                const known = [kept.digest, kept.size, kept.mediaType];
                crawl.follow("/7.png", "list", { keepBody: true, state: known.join(" ") });
            }
            console.log(page.fetchedAt / 1000, page.header("etag") ?? "none");
            helper(page, crawl);

            // @ts-expect-error: what is read may be missing
            stars.toFixed();
            // @ts-expect-error: what is read where nothing matches is of another type
            price.toFixed();
            // @ts-expect-error: a body may not be kept
            page.kept.digest;
            // @ts-expect-error: an answer may name no media type
            kept?.mediaType.length;
            // @ts-expect-error: nobody renames a file
            if (kept) kept.digest = "ab12";
            // @ts-expect-error: the wish is true or false
            crawl.follow("/7.png", "list", { keepBody: "true" });
            // @ts-expect-error: a priority is a number
            crawl.follow("/", "list", { priority: "1" });
            // @ts-expect-error: no such reading
            page.extract("lists");
            // @ts-expect-error: no such field
            page.extract("list").nxt;
            // @ts-expect-error: no such attribute
            page.adress;
            // @ts-expect-error: no such rule
            crawl.follow(next, "lists");
            // @ts-expect-error: an expression for links is a text
            next.matching(/c$/);
            // @ts-expect-error: only links that were read can be followed
            crawl.follow(links("a").matching("c$"), "list");
            // @ts-expect-error: links have no method
            crawl.follow(next, "list", { method: "POST" });
            // @ts-expect-error: a header may be missing
            crawl.follow(page.header("location"), "list");
            // @ts-expect-error: no such option
            crawl.follow("/", "list", { prioriti: 1 });
            // @ts-expect-error: no such kind of items
            crawl.emit("buch", {});
            // @ts-expect-error: an item is an object
            crawl.emit("book", 5);
            // @ts-expect-error: no such param
            crawl.param("strat");
            // @ts-expect-error: there is no network in the sandbox
            fetch("http://shop.test/");
            // @ts-expect-error: nor a timer
            setTimeout(() => {}, 1);
        },
        shelf: (page, crawl) => crawl.emit("shelf", page.json()),
        helped: (page, crawl) => helper(page, crawl),
        // @ts-expect-error: what a promise would do is lost
        async late(page, crawl) {},
        // @ts-expect-error: what a generator would do is lost
        *lazy(page, crawl) {},
    },
});

/**
 * A function beside the rules of any plugin.
 *
 * @param {import("./crawler.js").Page} page
 * @param {import("./crawler.js").Crawl} crawl
 */
function helper(page, crawl) {
    try {
        crawl.follow(page.extract("list").next, "list");
    } catch (error) {
        if (!(error instanceof RuleError)) throw skip(error);
        log.info(error.reason.tag, error.message);
    }
}

// A plugin that declares no params takes any.
export const any = plugin({
    name: "any",
    version: "0.1.0",
    root: (crawl) => crawl.follow(crawl.param("start"), "page"),
    rules: { page() {} },
});

/** @type {import("./crawler.js").Presence<boolean>} */
export const isThere = present("b");
/** @type {import("./crawler.js").Presence<number>} */
export const count = isThere.map(Number);

// @ts-expect-error: it is no longer true or false
isThere.map(Number).map((/** @type {boolean} */ there) => there);
// @ts-expect-error: nor is a default read in its place
isThere.otherwise(false);
// @ts-expect-error: there is one answer, however many elements match
present("b").all();
// @ts-expect-error: the answer is never missing
present("b").optional();
// @ts-expect-error: links stand beside rows
rows("p", { next: links("a") });
// @ts-expect-error: a field is made by a function
plugin({ name: "x", version: "0.1.0", reads: { page: { title: "h1" } }, root() {}, rules: {} });
// @ts-expect-error: no such key of a param
plugin({ name: "x", version: "0.1.0", params: { start: { abuot: "" } }, root() {}, rules: {} });
// @ts-expect-error: no such part of a plugin
plugin({ name: "x", version: "0.1.0", root() {}, rules: {}, read: {} });
// @ts-expect-error: there is no root
plugin({ name: "x", version: "0.1.0", rules: {} });
