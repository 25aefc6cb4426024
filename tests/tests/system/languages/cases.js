import { attr, blocked, fatal, links, plugin, present, retry, rows, skip, text } from "./crawler.js";

const cases = {
    rows: (page, crawl) => crawl.emit("any", page.extract("rows")),
    post: (page, crawl) =>
        crawl.follow(["/a", "/b"], "parse", { method: "POST", headers: { "x-n": 1 }, body: "ü=1", state: "ß", priority: -3 }),
    page: (page, crawl) =>
        crawl.emit("any", {
            url: page.url,
            requested: page.requestedUrl,
            status: page.status,
            headers: page.headers,
            header: page.header("x-n"),
            redirects: page.redirects,
            fetched: page.fetchedAt,
            charset: page.charset,
            source: page.metadata["charset-source"],
            truncated: page.truncated,
            depth: page.depth,
            state: page.state,
            referrer: page.referrer,
            attempt: page.attempt,
            text: page.text.slice(0, 4),
            body: page.body[0],
            params: crawl.params,
            param: crawl.param("none", null),
        }),
    skip: () => { throw skip(404); },
    retry: () => { throw retry("later", 1999.5); },
    blocked: () => { throw blocked("go away"); },
    fatal: () => { throw fatal("no"); },
    null: (page, crawl) => crawl.follow(["/a", null], "parse"),
    state: (page, crawl) => crawl.follow("/a", "parse", { state: 5 }),
    links: (page, crawl) => crawl.emit("any", page.extract("links")),
    returns: async (page, crawl) => { await 1; crawl.emit("any", {}); },
    schema: (page, crawl) => crawl.emit("strict", { n: "1" }),
    apart: (page, crawl) => {
        const { all, here } = page.extract("links");
        crawl.follow(here.matching("c$").matching("^http:"), "parse");
        crawl.follow(all.notMatching("c$"), "parse", { state: "not c" });
        crawl.follow(here.notMatching("."), "parse");
    },
    pattern: (page, crawl) => crawl.follow(page.extract("links").all.matching("("), "parse"),
    regex: (page) => page.extract("links").all.matching(/c$/),
    room: (page, crawl) => crawl.emit("any", { room: new Uint8Array(80 << 20).length }),
};

export const rules = plugin({
    name: "kiosk",
    version: "0.1.0",
    items: { any: true, strict: { type: "object", properties: { n: { type: "integer" } } } },
    reads: {
        rows: {
            shelves: rows("section", {
                name: text("h2"),
                books: rows("p", { title: text("b").optional(), sale: present("b").map((is) => is) }),
            }),
            tags: text("i").all(),
            none: text("u").all(),
            otherwise: attr("u", "n").otherwise(7),
            not: present("u").map((is) => !is),
        },
        links: { all: links("a"), here: links("a").withinHost() },
    },
    root(crawl) {},
    rules: { parse: (page, crawl) => cases[crawl.param("case")](page, crawl) },
});
