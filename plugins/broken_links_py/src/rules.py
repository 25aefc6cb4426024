"""The broken links of a site, as the plugin `broken_links` has them: each with its status and the page that has it."""

from urllib.parse import urlsplit

from crawler import Plugin, blocked, links, log, present, retry

# Number of attempts at a page whose server is busy.
ATTEMPTS = 3
# Statuses of a busy server. 429 is another one: it also slows the host down.
BUSY = (408, 502, 503, 504)

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
    reads={"page": {"links": links("a, area"), "linked": present("a[href], area[href]")}},
)


@broken_links.root
def root(crawl):
    """The first page may be broken too."""
    crawl.follow(crawl.param("start"), "check", accept_status="any")


@broken_links.rule
def check(page, crawl):
    """A page of the site leads to further links; a failure is what the crawl looks for."""
    may_wait = page.attempt < ATTEMPTS
    if 200 <= page.status <= 299:
        follow(page, crawl)
    elif page.status == 429 and may_wait:
        raise blocked("status 429")
    elif page.status in BUSY and may_wait:
        raise retry(f"status {page.status}")
    else:
        found = {"url": page.requested_url, "status": page.status, "referrer": page.referrer}
        crawl.emit("broken_link", found)


def follow(page, crawl):
    """Follows the links of a page of the site: the host that answers the first request, which each other one
    carries."""
    host = urlsplit(page.url).hostname
    is_first = page.state == ""
    if not is_first and page.state != host:
        return
    read = page.extract("page")
    if is_first and not read["linked"]:
        log.warn(f"the first page, {page.url}, has no links")
    crawl.follow(read["links"], "check", accept_status="any", state=host)


Rules = broken_links.rules()
