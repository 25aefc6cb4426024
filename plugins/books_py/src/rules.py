"""The books of a shop, as the plugin `books` has them: list pages lead to details and to the next list page."""

import re

from crawler import Plugin, attr, links, text


def pence(price):
    """`£12.34` as 1234."""
    return int("".join(match(price, r"£(\d+)\.(\d\d)").groups()))


def stock(words):
    """`In stock (7)` as 7, `Out of stock` as 0."""
    return 0 if words == "Out of stock" else int(match(words, r"In stock \((\d+)\)")[1])


def match(words, pattern):
    found = re.fullmatch(pattern, words)
    if not found:
        raise ValueError(f"it is not like {pattern}")
    return found


SHAPE = {
    "type": "object",
    "properties": {
        "url": {"type": "string"},
        "title": {"type": "string"},
        "author": {"type": "string"},
        "price_pence": {"type": "integer"},
        "stock": {"type": "integer"},
        "rating": {"type": "integer"},
        "tags": {"type": "array", "items": {"type": "string"}},
        "description": {"type": "string"},
    },
    "required": ["url", "title", "author", "price_pence", "stock", "rating", "tags", "description"],
}

books = Plugin(
    "books_py",
    "0.1.0",
    params={
        "start": {
            "about": "Address of the first list page",
            "default": "http://127.0.0.1:8000/catalogue/page-1.html",
        },
    },
    items={"book": SHAPE},
    reads={
        # Links are followed as they stand; the crawler makes them absolute and drops known ones.
        "list": {"books": links("article.book h3 a"), "next": links("li.next a")},
        # A part that is missing ends the call with an error that names its selector.
        "book": {
            "title": text("h1"),
            "author": text("p.author"),
            "price_pence": text("p.price").map(pence),
            "stock": text("p.stock").map(stock),
            "rating": attr("p.rating", "data-stars").map(int),
            "tags": text("ul.tags li").all(),
            "description": text("#description"),
        },
    },
)


@books.root
def root(crawl):
    """The first list page."""
    crawl.follow(crawl.param("start"), "list")


@books.rule("list")
def listing(page, crawl):
    """Books before the next list."""
    found = page.extract("list")
    crawl.follow(found["books"], "detail")
    crawl.follow(found["next"], "list")


@books.rule
def detail(page, crawl):
    """One book."""
    crawl.emit("book", {"url": page.url, **page.extract("book")})


Rules = books.rules()
