"""The items of each site of the gallery, by urllib and parsel: the other side of the comparison with the plugins.

    extract.py PLUGIN NAME=VALUE…    the params are those of the plugin; an item a line, as JSON
"""

import gzip
import hashlib
import json
import re
import sys
from datetime import datetime
from http.cookiejar import CookieJar
from urllib.error import HTTPError
from urllib.parse import quote_plus, urldefrag, urlencode, urljoin
from urllib.request import HTTPCookieProcessor, ProxyHandler, Request, build_opener

from parsel import Selector

browser = build_opener(ProxyHandler({}), HTTPCookieProcessor(CookieJar()))


class Page:
    """An answer, whatever its status."""

    def __init__(self, url, data=None, **headers):
        try:
            answer = browser.open(Request(url, data, headers))
        except HTTPError as error:
            answer = error
        self.url, self.status = answer.url, answer.status
        self.media_type = answer.headers.get_content_type()
        body = self.bytes = answer.read()
        if answer.headers["content-encoding"] == "gzip":
            body = gzip.decompress(body)
        self.text = body.decode(errors="replace")

    @property
    def html(self):
        return Selector(self.text)

    def links(self, xpath):
        return [urljoin(self.url, href) for href in self.html.xpath(xpath).getall()]


def pages(url):
    """The list page at an address, and those behind its links to the next."""
    while url:
        page = Page(url)
        yield page
        url = next(iter(page.links("//a[@rel='next']/@href")), None)


def words(node):
    """The text of a node, with white space folded."""
    return " ".join(node.xpath("string(.)").get().split())


def only(selector, xpath):
    [node] = selector.xpath(xpath)
    return words(node)


def money(text):
    currency = "EUR" if "EUR" in text else {"£": "GBP"}[text[0]]
    digits = re.sub(r"[^\d.,]", "", text)
    # A comma separates thousands unless two digits end the number behind it.
    digits = re.sub(r",(\d\d)$", r".\1", digits).replace(",", "")
    return {"amount": digits, "currency": currency}


def books(start):
    url = start
    while url:
        shelf = Page(url)
        for link in shelf.links("//h3/a/@href"):
            page = Page(link)
            main = page.html.xpath("//main")
            in_stock = re.search(r"\d+", only(main, "p[@class='stock']"))
            yield {
                "url": page.url,
                "title": only(main, "h1"),
                "author": only(main, "p[@class='author']"),
                "price_pence": round(float(only(main, "p[@class='price']").lstrip("£")) * 100),
                "stock": int(in_stock.group()) if in_stock else 0,
                "rating": int(only(main, "p[@class='rating']").split()[0]),
                "tags": [words(tag) for tag in main.xpath("ul/li")],
                "description": only(main, "div[@id='description']"),
            }
        url = next(iter(shelf.links("//li[@class='next']/a/@href")), None)


def json_api(api):
    api, cursor, authors = api.rstrip("/") + "/", "", set()
    while cursor is not None:
        answer = json.loads(Page(f"{api}books{cursor}", accept="application/json").text)
        for book in answer["books"]:
            authors.add(book["author"])
            yield {
                "id": book["id"],
                "title": book["title"],
                "author": book["author"],
                "year": book.get("year"),
                "tags": book.get("tags", []),
            }
        cursor = answer["next"] and "?cursor=" + quote_plus(answer["next"])
    for author in authors:
        page = Page(f"{api}authors/{author}", accept="application/json")
        if page.status == 200:
            author = json.loads(page.text)
            yield {key: author[key] for key in ("id", "name", "born")}


def login(start, user, password):
    url = start
    while url:
        page = Page(url)
        if token := page.html.xpath("//input[@name='token']/@value").get():
            fields = {"token": token, "user": user, "password": password}
            assert "Welcome" in Page(page.url, urlencode(fields).encode()).text
            continue
        for row in page.html.xpath("//table[@class='orders']/tbody/tr"):
            number, _, total = [words(cell) for cell in row.xpath("td")]
            date = row.xpath(".//time/@datetime").get()
            yield {"number": int(number), "date": date, "total": money(total)}
        url = next(iter(page.links("//a[@rel='next']/@href")), None)


def search_form(start, searches):
    page = Page(start)
    form = page.html.xpath("//form[@id='search']")
    action = urljoin(page.url, form.xpath("@action").get())
    for search in searches.split(","):
        search = search.strip()
        query = urlencode({"lang": "en", "q": search, "sort": "year"})
        if form.xpath("@method").get() == "post":
            page = Page(action, query.encode())
        else:
            page = Page(f"{action}?{query}")
        more = page.links("//a[@rel='next']/@href")
        for page in [page, *(pages(more[0]) if more else [])]:
            for hit in page.html.xpath("//ol/li"):
                year = hit.xpath("span/text()").get()
                yield {
                    "search": search,
                    "url": urljoin(page.url, hit.xpath("a/@href").get()),
                    "title": only(hit, "a"),
                    "year": year and int(year),
                }


def sitemap(site, since=""):
    robots = Page(urljoin(site, "/robots.txt")).text
    maps = re.findall(r"(?im)^sitemap\s*:\s*(\S+)", robots)
    for url in maps:
        page = Page(url)
        xml = Selector(page.text.split("?>", 1)[1], type="xml")
        xml.remove_namespaces()
        for entry in xml.xpath("/sitemapindex/sitemap"):
            maps.append(only(entry, "loc"))
        for entry in xml.xpath("/urlset/url"):
            changed = words(entry.xpath("lastmod")[0]) if entry.xpath("lastmod") else None
            if not is_fresh(changed, since):
                continue
            page = Page(only(entry, "loc"))
            if page.status == 200:
                yield {"url": page.url, "title": only(page.html, "//title"), "lastmod": changed}


def is_fresh(changed, since):
    """True unless a time is known to be before the day."""
    if not since or not changed:
        return True
    known = [int(number) for number in re.findall(r"\d+", changed)[:3]]
    return known >= [int(number) for number in since.split("-")][: len(known)]


def broken_links(start):
    referrers, queue = {start: None}, [start]
    for url in queue:
        page = Page(url)
        if page.status != 200:
            yield {"url": url, "status": page.status, "referrer": referrers[url]}
            continue
        for link in page.links("//a/@href"):
            if link not in referrers:
                referrers[link] = page.url
                queue.append(link)


def several_hosts(start):
    for shelf in pages(start):
        for link in shelf.links("//ul[@class='products']//a/@href"):
            product = Page(link)
            others = product.links("//a[@class='reviews']/@href")
            reviews = [review for other in others for review in Page(other).html.xpath("//article")]
            yield {
                "url": product.url,
                "name": only(product.html, "//h1"),
                "price": money(only(product.html, "//p[@class='price']")),
                "reviews": [
                    {"stars": int(only(review, "span").split("/")[0]), "text": only(review, "p")}
                    for review in reviews
                ],
            }


def table(start):
    [peaks] = Page(start).html.xpath("//table[@id='peaks']")
    head = spread(peaks.xpath("thead/tr"))
    body = spread(peaks.xpath("tbody/tr"))
    n_head, n_body, n_columns = (
        max(place[0] for place in head) + 1,
        max(place[0] for place in body) + 1,
        max(place[1] for place in head) + 1,
    )
    names = [tuple(dict.fromkeys(head[row, column] for row in range(n_head))) for column in range(n_columns)]
    for row in range(n_body):
        of = {name: body[row, column] for column, name in enumerate(names)}
        number = lambda name: int(re.match(r"[\d,]+", of[name]).group().replace(",", ""))
        year = of["First ascent",]
        yield {
            "range": of["Range",],
            "name": of["Peak",],
            "metres": number(("Height", "m")),
            "feet": number(("Height", "ft")),
            "first_ascent": int(year) if year.isdigit() else None,
        }


def spread(rows):
    """The text at each place of a part of a table."""
    taken = {}
    for y, row in enumerate(rows):
        for cell in row.xpath("td|th"):
            x = next(x for x in range(1000) if (y, x) not in taken)
            height = int(cell.attrib.get("rowspan", 1)) or len(rows) - y
            width = int(cell.attrib.get("colspan", 1))
            taken |= {(y + dy, x + dx): words(cell) for dy in range(height) for dx in range(width)}
    return taken


def incremental(start):
    for shelf in pages(start):
        for link in shelf.links("//h2/a/@href"):
            page = Page(link)
            corrected = page.html.xpath("//time[@class='corrected']/@datetime").get()
            yield {
                "url": page.url,
                "title": only(page.html, "//h1"),
                "published": time(page.html.xpath("//time[@class='published']/@datetime").get()),
                "corrected": corrected and time(corrected),
                "paragraphs": [words(p) for p in page.html.xpath("//main/p")],
            }


def files(start):
    todo, first_pages = [start], {}
    for url in todo:
        page = Page(url)
        links = [urldefrag(link).url for link in page.links("//img/@src | //a/@href")]
        for link in links:
            if link.lower().endswith((".png", ".jpg", ".jpeg", ".pdf")):
                first_pages.setdefault(link, page.url)
            elif link not in todo:
                todo.append(link)
    for url, referrer in first_pages.items():
        page = Page(url)
        if page.media_type == "text/html":
            continue
        yield {
            "url": url,
            "referrer": referrer,
            "digest": hashlib.sha256(page.bytes).hexdigest(),
            "media_type": page.media_type,
            "size": len(page.bytes),
        }


def time(text):
    return datetime.fromisoformat(text).isoformat()


plugin, *params = sys.argv[1:]
for item in globals()[plugin](**dict(param.split("=", 1) for param in params)):
    print(json.dumps(item))
