"""Headings as JSON and absolute links of pages, as Python programs get them: micros for a page."""

import json
import statistics
import sys
import time
from urllib.parse import urljoin

from parsel import Selector
from selectolax.lexbor import LexborHTMLParser

HEADINGS = "h1, h2, h3, h4, h5, h6"


def lexbor(url, html):
    tree = LexborHTMLParser(html)
    headings = [" ".join(node.text().split()) for node in tree.css(HEADINGS)]
    links = [urljoin(url, node.attributes["href"] or "") for node in tree.css("a[href]")]
    return headings, links


def parsel(url, html):
    selector = Selector(text=html)
    headings = [" ".join("".join(node.css("::text").getall()).split()) for node in selector.css(HEADINGS)]
    links = [urljoin(url, href) for href in selector.css("a::attr(href)").getall()]
    return headings, links


def main():
    n_rounds, files = int(sys.argv[1]), sys.argv[2:]
    pages = []
    for file in files:
        with open(file, encoding="utf-8") as opened:
            pages.append(("http://docs.test/" + file.rpartition("/html/")[2], opened.read()))
    peers = []
    for name, read in [("selectolax (lexbor)", lexbor), ("parsel (lxml)", parsel)]:
        took, n_headings, n_links = [], 0, 0
        for _ in range(n_rounds + 1):
            began, n_headings, n_links = time.perf_counter(), 0, 0
            for url, html in pages:
                headings, links = read(url, html)
                json.dumps({"url": url, "headings": headings}, ensure_ascii=False)
                n_headings += len(headings)
                n_links += len(links)
            took.append(time.perf_counter() - began)
        # The first warms up.
        micros = statistics.median(took[1:]) / len(pages) * 1e6
        peers.append({"name": name, "micros": micros, "n_headings": n_headings, "n_links": n_links})
    json.dump(peers, sys.stdout)


main()
