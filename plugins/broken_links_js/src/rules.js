// The broken links of a site, as the plugin `broken_links` has them: each with its status and the page that has it.

import { links, plugin } from "../../../plugin-sdk/js/crawler.js";

/** Any status is wanted: a failure is what the crawl looks for. */
const CHECKED = { acceptStatus: "any" };

/** `site.test` of `http://ann@site.test:8080/page`. */
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
    reads: { page: { links: links("a, area") } },

    /** The first page may be broken too. */
    root(crawl) {
        crawl.follow(crawl.param("start"), "check", CHECKED);
    },

    rules: {
        /** A page of the site leads to further links. */
        check(page, crawl) {
            const { requestedUrl: url, status, referrer } = page;
            if (status < 200 || status > 299) {
                crawl.emit("broken_link", { url, status, referrer });
            } else if (host(page.url) === host(crawl.param("start"))) {
                crawl.follow(page.extract("page").links, "check", CHECKED);
            }
        },
    },
});
