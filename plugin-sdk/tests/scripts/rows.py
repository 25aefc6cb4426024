"""The boundary for the SDK, and a page of many rows in many rows."""

import json
import sys
from types import SimpleNamespace
from unittest.mock import MagicMock

N = 2000
looks = 0


class Counted(list):
    """Counts what is looked at."""

    def __iter__(self):
        global looks
        for number in super().__iter__():
            looks += 1
            yield number

    def __getitem__(self, at):
        global looks
        looks += 1
        return super().__getitem__(at)


class Err(Exception):
    pass


imports = MagicMock()
sys.modules["componentize_py_types"] = SimpleNamespace(Err=Err)
sys.modules["wit_world"] = SimpleNamespace(imports=imports)
sys.modules["wit_world.imports"] = imports

from crawler import NO_ROW, Plugin, rows, text

# Each second shelf has two books, the others have none. The last book has no title.
shelf_of = [n // 2 * 2 for n in range(N)]
titled = list(range(N - 1))
spans = [at for n in titled for at in (n % 2, n % 2 + 1)]
imports.page.extract.return_value = SimpleNamespace(
    text="ab",
    groups=[[NO_ROW] * N, Counted(shelf_of)],
    columns=[SimpleNamespace(rows=Counted(titled), spans=spans)],
)

shop = Plugin(
    "shop",
    "0.1.0",
    items={"page": True},
    reads={"page": {"shelves": rows("ul", {"books": rows("li", {"title": text("b").optional()})})}},
)


@shop.root
def root(crawl):
    pass


@shop.rule
def page(page, crawl):
    crawl.emit("page", page.extract("page"))


# A call takes what is printed for lines of the log.
streams = sys.stdout, sys.stderr
shop.rules()().parse(0)
sys.stdout, sys.stderr = streams
emitted = json.loads(imports.output.emit.call_args.args[1])


def book(n):
    return {"title": None if n == N - 1 else "ab"[n % 2]}


expected = [{"books": [book(n), book(n + 1)] if n % 2 == 0 else []} for n in range(N)]
assert emitted == {"shelves": expected}, emitted
# Each number once or twice, and not once for each shelf.
assert looks <= 4 * N, f"{looks} looks"
print("as expected")
