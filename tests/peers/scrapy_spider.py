"""Scrapy, called as `python scrapy_spider.py START BELOW CONCURRENCY OUTPUT`: the task and the items of the other peers.

Settings, and why:

- as many pages in flight as the others; a host has a bound of its own, which is 8 unless it is raised;
- no delay, no throttle, no robots.txt, no cookies, no second attempts, no redirects, no cache, no log, no statistics: nothing
  makes it wait or work for what nobody asked for, so most middlewares and extensions are off;
- links are told apart here, by their paths, before requests are made of them: the filter of duplicates would
  make a request and its fingerprint of each of them;
- pages are read by lxml, whose paths are compiled once. A selector of parsel is the same parser below more objects;
- items are written by the spider itself: the feed exporter has more to do for each;
- the event loop is uvloop.

It is one process, so it uses one processor: Scrapy has no way to share a crawl among several.
"""

import json
import sys
from urllib.parse import urljoin

from lxml import etree, html
from scrapy import Request, Spider
from scrapy.crawler import AsyncCrawlerProcess
from scrapy.spidermiddlewares.httperror import HttpError

TITLE = etree.XPath("string((//title)[1])")
HEADINGS = etree.XPath("count(//h1 | //h2 | //h3 | //h4 | //h5 | //h6)")
HREFS = etree.XPath("//a/@href", smart_strings=False)
SPACE = " \t\n\r\f"


class Site(Spider):
    name = "site"

    def __init__(self, start, below, output, failures):
        super().__init__()
        self.site = urljoin(start, "/")[:-1]
        self.begin = start
        self.below = self.site + below
        self.seen = {start}
        self.output = output
        self.failures = failures

    async def start(self):
        yield self.request(self.begin)

    def request(self, link):
        return Request(link, errback=self.failed, dont_filter=True)

    def failed(self, failure):
        """A page that is not there is no item. One that cannot be fetched makes this another crawl."""
        if not failure.check(HttpError):
            self.failures.append(failure.getErrorMessage())

    def parse(self, response):
        parser = html.HTMLParser(encoding="utf-8", huge_tree=True)
        page = html.document_fromstring(response.body, parser=parser)
        links = self.links(response.url, HREFS(page))
        item = {
            "url": response.url,
            "title": " ".join(TITLE(page).split()),
            "headings": int(HEADINGS(page)),
            "links": len(links),
        }
        self.output.write(json.dumps(item) + "\n")
        new = links - self.seen
        self.seen |= new
        for link in new:
            yield self.request(link)

    def links(self, base, hrefs):
        """Returns the different pages of the site that the page links to."""
        addresses = {href.partition("#")[0].partition("?")[0].strip(SPACE) for href in hrefs}
        # An address that is nothing but a fragment is the page itself.
        links = {urljoin(base, address) for address in addresses}
        return {link for link in links if link.endswith((".html", "/")) and link.startswith(self.below)}


def settings(concurrency):
    off = {
        "scrapy.downloadermiddlewares.offsite.OffsiteMiddleware": None,
        "scrapy.downloadermiddlewares.httpauth.HttpAuthMiddleware": None,
        "scrapy.downloadermiddlewares.downloadtimeout.DownloadTimeoutMiddleware": None,
        "scrapy.downloadermiddlewares.defaultheaders.DefaultHeadersMiddleware": None,
    }
    spider_off = {
        "scrapy.spidermiddlewares.start.StartSpiderMiddleware": None,
        "scrapy.spidermiddlewares.referer.RefererMiddleware": None,
        "scrapy.spidermiddlewares.urllength.UrlLengthMiddleware": None,
        "scrapy.spidermiddlewares.depth.DepthMiddleware": None,
    }
    extensions_off = {
        "scrapy.extensions.corestats.CoreStats": None,
        "scrapy.extensions.logcount.LogCount": None,
        "scrapy.extensions.memusage.MemoryUsage": None,
        "scrapy.extensions.feedexport.FeedExporter": None,
        "scrapy.extensions.logstats.LogStats": None,
        "scrapy.extensions.spiderstate.SpiderState": None,
    }
    return {
        "ASYNCIO_EVENT_LOOP": "uvloop.Loop",
        "AUTOTHROTTLE_ENABLED": False,
        "COMPRESSION_ENABLED": False,
        "CONCURRENT_REQUESTS": concurrency,
        "CONCURRENT_REQUESTS_PER_DOMAIN": concurrency,
        "COOKIES_ENABLED": False,
        "DOWNLOADER_MIDDLEWARES": off,
        "DOWNLOADER_STATS": False,
        "DOWNLOAD_DELAY": 0,
        "EXTENSIONS": extensions_off,
        "HTTPCACHE_ENABLED": False,
        "HTTPPROXY_ENABLED": False,
        "LOG_ENABLED": False,
        "METAREFRESH_ENABLED": False,
        "REDIRECT_ENABLED": False,
        "REMOTE_CONTROL_ENABLED": False,
        "RETRY_ENABLED": False,
        "ROBOTSTXT_OBEY": False,
        "SPIDER_MIDDLEWARES": spider_off,
        "STATS_CLASS": "scrapy.statscollectors.DummyStatsCollector",
        "TELNETCONSOLE_ENABLED": False,
    }


def main():
    start, below, concurrency, output = sys.argv[1:]
    failures = []
    with open(output, "w", encoding="utf-8") as items:
        process = AsyncCrawlerProcess(settings(int(concurrency)))
        process.crawl(Site, start=start, below=below, output=items, failures=failures)
        process.start()
    if failures:
        sys.exit(f"{len(failures)} pages cannot be fetched: {failures[0]}")


main()
