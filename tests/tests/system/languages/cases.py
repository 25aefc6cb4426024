from crawler import Plugin, attr, blocked, fatal, links, present, retry, rows, skip, text

kiosk = Plugin(
    "kiosk",
    "0.1.0",
    items={"any": True, "strict": {"type": "object", "properties": {"n": {"type": "integer"}}}},
    reads={
        "rows": {
            "shelves": rows("section", {
                "name": text("h2"),
                "books": rows("p", {"title": text("b").optional(), "sale": present("b").map(lambda is_: is_)}),
            }),
            "tags": text("i").all(),
            "none": text("u").all(),
            "otherwise": attr("u", "n").otherwise(7),
            "not": present("u").map(lambda is_: not is_),
        },
        "links": {"all": links("a"), "here": links("a").within_host()},
    },
)


@kiosk.root
def root(crawl):
    pass


def throw(error):
    raise error


def lazy(crawl):
    yield crawl.emit("any", {})


def apart(page, crawl):
    found = page.extract("links")
    crawl.follow(found["here"].matching("c$").matching("^http:"), "parse")
    crawl.follow(found["all"].not_matching("c$"), "parse", state="not c")
    crawl.follow(found["here"].not_matching("."), "parse")


@kiosk.rule
def parse(page, crawl):
    return {
        "rows": lambda: crawl.emit("any", page.extract("rows")),
        "post": lambda: crawl.follow(
            ["/a", "/b"], "parse", method="POST", headers={"x-n": 1}, body="ü=1", state="ß", priority=-3
        ),
        "page": lambda: crawl.emit("any", {
            "url": page.url,
            "requested": page.requested_url,
            "status": page.status,
            "headers": page.headers,
            "header": page.header("x-n"),
            "redirects": page.redirects,
            "fetched": page.fetched_at,
            "charset": page.charset,
            "source": page.metadata["charset-source"],
            "truncated": page.truncated,
            "depth": page.depth,
            "state": page.state,
            "referrer": page.referrer,
            "attempt": page.attempt,
            "text": page.text[:4],
            "body": page.body[0],
            "params": crawl.params,
            "param": crawl.param("none", None),
        }),
        "skip": lambda: throw(skip(404)),
        "retry": lambda: throw(retry("later", 1999.5)),
        "blocked": lambda: throw(blocked("go away")),
        "fatal": lambda: throw(fatal("no")),
        "null": lambda: crawl.follow(["/a", None], "parse"),
        "state": lambda: crawl.follow("/a", "parse", state=5),
        "links": lambda: crawl.emit("any", page.extract("links")),
        "returns": lambda: lazy(crawl),
        "schema": lambda: crawl.emit("strict", {"n": "1"}),
        "apart": lambda: apart(page, crawl),
        "pattern": lambda: crawl.follow(page.extract("links")["all"].matching("("), "parse"),
        "regex": lambda: page.extract("links")["all"].matching(5),
        "room": lambda: crawl.emit("any", {"room": len(bytearray(80 << 20))}),
    }[crawl.param("case")]()


Rules = kiosk.rules()
