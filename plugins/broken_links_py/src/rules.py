"""The broken links of a site, as the plugin `broken_links` has them: each with its status and the page that has it."""

from urllib.parse import urlsplit

from crawler import Plugin, links

SHAPE = {
    "type": "object",
    "properties": {
        "url": {"type": "string"},
        "status": {"type": "integer"},
        "referrer": {"type": ["string", "null"]},
    },
    "required": ["url", "status", "referrer"],
}

broken_links = Plugin(
    "broken_links_py",
    "0.1.0",
    params={"start": {"about": "Address of the first page of the site"}},
    items={"broken_link": SHAPE},
    reads={"page": {"links": links("a, area")}},
)


@broken_links.root
def root(crawl):
    """The first page may be broken too."""
    crawl.follow(crawl.param("start"), "check", accept_status="any")


@broken_links.rule
def check(page, crawl):
    """A page of the site leads to further links; a failure is what the crawl looks for."""
    if not 200 <= page.status <= 299:
        found = {"url": page.requested_url, "status": page.status, "referrer": page.referrer}
        crawl.emit("broken_link", found)
    elif urlsplit(page.url).hostname == urlsplit(crawl.param("start")).hostname:
        crawl.follow(page.extract("page")["links"], "check", accept_status="any")


Rules = broken_links.rules()
