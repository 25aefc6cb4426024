// @ts-check
// The books of a shop, as the plugin `books` has them: list pages lead to details and to the next list page.

import { attr, links, plugin, text } from "../../../plugin-sdk/js/crawler.js";

/** `£12.34` as 1234. @param {string} price */
const pence = (price) => Number(match(price, /^£(\d+)\.(\d\d)$/).slice(1).join(""));

/** `In stock (7)` as 7, `Out of stock` as 0. @param {string} words */
const stock = (words) => (words === "Out of stock" ? 0 : Number(match(words, /^In stock \((\d+)\)$/)[1]));

/** @param {string} words @param {RegExp} pattern */
function match(words, pattern) {
    const found = pattern.exec(words);
    if (!found) throw new Error(`it is not like ${pattern}`);
    return found;
}

export const rules = plugin({
    name: "books_js",
    version: "0.1.0",
    params: {
        start: {
            about: "Address of the first list page",
            default: "http://127.0.0.1:8000/catalogue/page-1.html",
        },
    },
    items: {
        book: {
            type: "object",
            properties: {
                url: { type: "string" },
                title: { type: "string" },
                author: { type: "string" },
                price_pence: { type: "integer" },
                stock: { type: "integer" },
                rating: { type: "integer" },
                tags: { type: "array", items: { type: "string" } },
                description: { type: "string" },
            },
            required: ["url", "title", "author", "price_pence", "stock", "rating", "tags", "description"],
        },
    },
    reads: {
        // Links are followed as they stand; the crawler makes them absolute and drops known ones.
        list: { books: links("article.book h3 a"), next: links("li.next a") },
        // A part that is missing ends the call with an error that names its selector.
        book: {
            title: text("h1"),
            author: text("p.author"),
            price_pence: text("p.price").map(pence),
            stock: text("p.stock").map(stock),
            rating: attr("p.rating", "data-stars").map(Number),
            tags: text("ul.tags li").all(),
            description: text("#description"),
        },
    },

    /** The first list page. */
    root(crawl) {
        crawl.follow(crawl.param("start"), "list");
    },

    rules: {
        /** Books before the next list. */
        list(page, crawl) {
            const { books, next } = page.extract("list");
            crawl.follow(books, "detail");
            crawl.follow(next, "list");
        },

        /** One book. */
        detail(page, crawl) {
            crawl.emit("book", { url: page.url, ...page.extract("book") });
        },
    },
});
