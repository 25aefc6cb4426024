// @ts-check
// The broken links of a site, as the plugin `broken_links` has them: each with its status and the page that has it.

import { blocked, links, log, plugin, present, retry } from "../../../plugin-sdk/js/crawler.js";

/** Number of attempts at a page whose server is busy. */
const ATTEMPTS = 3;
/** Statuses of a busy server. 429 is another one: it also slows the host down. */
const BUSY = [408, 502, 503, 504];
/** Any status is wanted: a failure is what the crawl looks for. */
const CHECKED = { acceptStatus: "any" };

/** `site.test` of `http://ann@site.test:8080/page`. @param {string} url */
const host = (url) => /^https?:\/\/(?:[^/?#]*@)?([^/?#]*?)(?::\d+)?(?:[/?#]|$)/i.exec(url)?.[1].toLowerCase();

export const rules = plugin({
    name: "broken_links_js",
    version: "0.1.0",
    params: { start: { about: "Address of the first page of the site" } },
    items: {
        broken_link: {
            type: "object",
            properties: {
                url: { type: "string" },
                status: { type: "integer" },
                referrer: { type: ["string", "null"] },
            },
            required: ["url", "status", "referrer"],
        },
    },
    reads: { page: { links: links("a, area"), linked: present("a[href], area[href]") } },

    /** The first page may be broken too. */
    root(crawl) {
        crawl.follow(crawl.param("start"), "check", CHECKED);
    },

    rules: {
        /** A page of the site leads to further links; a failure is what the crawl looks for. */
        check(page, crawl) {
            const { requestedUrl: url, status, referrer } = page;
            if (status >= 200 && status <= 299) {
                follow(page, crawl);
            } else if (status === 429 && page.attempt < ATTEMPTS) {
                throw blocked("status 429");
            } else if (BUSY.includes(status) && page.attempt < ATTEMPTS) {
                throw retry(`status ${status}`);
            } else {
                crawl.emit("broken_link", { url, status, referrer });
            }
        },
    },
});

/**
 * Follows the links of a page of the site: the host that answers the first request, which each other one carries.
 *
 * @param {import("../../../plugin-sdk/js/crawler.js").Page} page
 * @param {import("../../../plugin-sdk/js/crawler.js").Crawl} crawl
 */
function follow(page, crawl) {
    const state = host(page.url);
    const isFirst = page.state === "";
    if (!isFirst && page.state !== state) return;
    const read = page.extract("page");
    if (isFirst && !read.linked) log.warn(`the first page, ${page.url}, has no links`);
    crawl.follow(read.links, "check", { ...CHECKED, state });
}
