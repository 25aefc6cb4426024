"""The boundary for the SDK, and each example of its docstrings, run as it stands."""

import ast
import sys
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import MagicMock

imports = MagicMock()
sys.modules["componentize_py_types"] = SimpleNamespace(Err=type("Err", (Exception,), {}))
sys.modules["wit_world"] = SimpleNamespace(imports=imports)
sys.modules["wit_world.imports"] = imports

import crawler
import reference
from crawler import NO_ROW, Crawl, Page, Plugin, RuleError, links, text

imports.config.get.return_value = "1"
imports.config.all.return_value = [("start", "http://shop.test/")]
imports.types.Field = lambda name, group, *rest: SimpleNamespace(name=name, group=group)


def page_of_numbers(plugin):
    """Every selector matches once, and what is read is a number, which each function of `map` takes."""

    def extract(at):
        plan = plugin._plans[at]
        columns = [
            SimpleNamespace(rows=[NO_ROW if field.group is None else field.group], spans=[0, 1]) for field in plan._fields
        ]
        return SimpleNamespace(text="7", groups=[[NO_ROW] for _ in plan._groups], columns=columns)

    host = imports.page
    for name, answer in {
        "url": "http://shop.test/7",
        "requested_url": "http://shop.test/7",
        "status": 503,
        "headers": [("set-cookie", "a=b")],
        "redirects": [],
        "fetched_at": 1700000000000,
        "charset": "UTF-8",
        "metadata": [("address", "192.0.2.7")],
        "depth": 0,
        "state": b"poetry",
        "referrer": None,
        "attempt": 1,
        "truncated": True,
        "text": '{"books": [{"title": "The Waves"}]}',
        "body": b"",
    }.items():
        getattr(host, name).return_value = answer
    host.extract.side_effect = extract
    return Page(plugin)


def shop(reads):
    return Plugin("shop", "0.1.0", items={"book": True, "broken_link": True}, reads=reads)


def check(_):
    """Function that the example of RuleError calls."""
    raise crawler.skip("nothing")


def run(code):
    """Runs an example: rules of a plugin, lines of a rule, or a field of `reads`, which is read from a page."""
    reads = {"list": {"next": links("a")}, "book": {"title": text("h1")}}
    if code.startswith('"'):
        reads["list"] = eval(f"{{{code}}}", vars(crawler))
        plugin = shop(reads)
        assert page_of_numbers(plugin).extract("list").keys() == reads["list"].keys()
        return
    plugin = shop(reads)
    plugin.rule("list")(lambda page, crawl: None)
    # An example that has rules of its own adds them to another plugin.
    decorated = Plugin("shop", "0.1.0", reads=reads)
    decorated.root(lambda crawl: None)
    names = {name: getattr(crawler, name) for name in crawler.__all__}
    names |= {"page": page_of_numbers(plugin), "crawl": Crawl(plugin), "shop": decorated, "check": check}
    try:
        exec(code, names)
    except RuleError:
        pass


tree = ast.parse(Path(reference.SDK).read_text(encoding="utf-8"))
described = list(reference.names(tree))
assert len(described) > 40, len(described)
documented = [("the module", 1, ast.get_docstring(tree)), *((name.title, name.line, name.doc) for name in described)]
for title, line, doc in documented:
    try:
        run(reference.example(doc))
    except Exception as error:
        sys.exit(f"{reference.SDK}:{line}: the example of {title} fails: {type(error).__name__}: {error}")
print("as expected")
