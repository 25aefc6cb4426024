"""SDK for crawl rules in Python: rules are plain functions, and the crawler reads pages for them in one pass.

A call is one run of a rule on one page. Its items, and the requests that it hands over, are kept only if it ends
well. A rule ends a call early by raising what `skip`, `retry`, `blocked` or `fatal` returns. Any other exception that
leaves a rule gives the page up: it becomes a dead letter with the text of the exception as its reason, and is not
tried again. A mistake of the rules themselves is shown with its file, line and function by `crawler plugin test`, in
the log of the crawl and by `crawler frontier why`. Lines of the log are kept in each case.

The crawler checks what a call hands over. What it refuses, such as an item that does not fit its schema or more items
than the limits of a call allow, is an exception whose text names the reason or the limit.

A rule keeps nothing between pages; state for the next page travels with its request. What a plugin imports is imported
when it is built. While a rule runs, the import of another module is an `ImportError`, and opening a file is an
`OSError`. Asking for a clock ends the call; `Page.fetched_at` tells the time of the answer.

The guide for authors, `GUIDE.md` in the folder of a new plugin, tells how rules are built and tested and what they
cost. The documentation of the SDK for Rust tells what a selector may say.

Example:
    from crawler import Crawl, Page, Plugin, attr, links, text

    shop = Plugin(
        "shop",
        "0.1.0",
        params={"start": {"about": "Address of the first list page", "default": "https://shop.example/"}},
        items={"book": {"type": "object"}},
        reads={
            "list": {"books": links("h3 a"), "next": links("li.next a")},
            "book": {"title": text("h1"), "stars": attr(".rating", "data-stars").map(int).optional()},
        },
    )

    @shop.root
    def root(crawl: Crawl) -> None:
        crawl.follow(crawl.param("start"), "list")

    @shop.rule("list")
    def listing(page: Page, crawl: Crawl) -> None:
        found = page.extract("list")
        crawl.follow(found["books"], "detail")
        crawl.follow(found["next"], "list")

    @shop.rule
    def detail(page: Page, crawl: Crawl) -> None:
        crawl.emit("book", {"url": page.url, **page.extract("book")})

    Rules = shop.rules()
"""

# mypy: ignore-errors
# The boundary has no types outside of a component. Those of names that an author uses are checked where they are used.

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from copy import copy
from math import ceil
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar, overload

if TYPE_CHECKING:
    # Older interpreters, which can show this module too, lack it.
    from typing import Self

try:
    from componentize_py_types import Err
    from wit_world.imports import config, log as lines, output, page as host, types
except ModuleNotFoundError as error:
    if error.name not in ("componentize_py_types", "wit_world"):
        raise

    class _Outside:
        """Stands for the boundary where there is none, so that `help` can show this module."""

        def __getattr__(self, name: str) -> Any:
            raise AttributeError("rules run in a component: use `crawler plugin test`, or `crawler run .`")

    Err = config = lines = output = host = types = _Outside()

# Names that an author uses, in the order of the reference.
__all__ = [
    "Plugin",
    "text",
    "raw",
    "inner",
    "attr",
    "tag",
    "present",
    "links",
    "rows",
    "Value",
    "Links",
    "Page",
    "Crawl",
    "skip",
    "retry",
    "blocked",
    "fatal",
    "RuleError",
    "log",
]

T = TypeVar("T")
U = TypeVar("U")

# Row of what lies in none, at the boundary.
NO_ROW = 0xFFFFFFFF

_NOTHING = object()


class Value(Generic[T]):
    """A value that is read of elements. `text`, `raw`, `inner`, `attr`, `tag` and `present` return one, and each
    method returns a new one.

    Without `all`, the value is that of the first element that matches. If there is none, `Page.extract` raises an
    exception that names field and selector, unless `optional` or `otherwise` was called. `T` is the type of the value
    of one element.

    Example:
        "stars": attr("p.rating", "data-stars").map(int).optional()
    """

    def __init__(
        self,
        css: str,
        take: Any,
        every: bool = False,
        presence: bool = False,
        missing: Callable[[], Any] | None = None,
        change: Callable[[Any], Any] = lambda text: text,
    ) -> None:
        self.css, self.take, self.every, self.presence = css, take, every, presence
        self.missing, self.change = missing, change

    def _with(self, **parts: Any) -> Value[Any]:
        return Value(**{**vars(self), **parts})

    def all(self) -> Value[T]:
        """Reads all elements that match, as a list in the order of the page. It is empty where none matches.

        Example:
            "tags": text("ul.tags li").all()
        """
        return self._with(every=True)

    def optional(self) -> Value[T]:
        """Reads `None` where no element matches.

        Example:
            "description": text("#description").optional()
        """
        return self.otherwise(None)

    def otherwise(self, value: object) -> Value[T]:
        """Reads this value where no element matches. Functions of `map` do not see it.

        Example:
            "stock": text("p.stock").map(int).otherwise(0)
        """
        return self._with(missing=lambda: value)

    def map(self, change: Callable[[T], U]) -> Value[U]:
        """Makes the value of each element by a function. Several are called in turn.

        The exception that the function raises ends the call, with the name of the field, its selector and the text in
        front of its own words. A `RuleError` is raised as it is.

        Example:
            "price": text("p.price").map(lambda price: float(price.removeprefix("£")))
        """
        before = self.change
        return self._with(change=lambda text: change(before(text)))


def text(css: str) -> Value[str]:
    """Reads the text of an element and of all that it contains: runs of white space are one space, and the ends are
    trimmed.

    Example:
        "title": text("h1")
    """
    return Value(css, types.Take_Text())


def raw(css: str) -> Value[str]:
    """Reads the text of an element like `text`, with all white space as written.

    Example:
        "poem": raw("pre")
    """
    return Value(css, types.Take_TextRaw())


def inner(css: str) -> Value[str]:
    """Reads what stands between the tags of an element, as written.

    Example:
        "body": inner("div.article")
    """
    return Value(css, types.Take_Inner())


def attr(css: str, name: str) -> Value[str]:
    """Reads an attribute of an element. Elements that lack it are passed over.

    An address is read as the page has it. `Crawl.follow` makes it absolute.

    Example:
        "image": attr("img.cover", "src")
    """
    return Value(css, types.Take_Attr(name))


def tag(css: str) -> Value[str]:
    """Reads the name of an element in lower case, such as `h2`.

    Example:
        "headings": tag("h1, h2, h3").all()
    """
    return Value(css, types.Take_Tag())


def present(css: str) -> Value[bool]:
    """Reads `True` if there is such an element, and `False` otherwise. It is never missing, and `all` has no effect.

    Example:
        "on_sale": present("p.sale")
    """
    return Value(css, types.Take_Present(), presence=True)


class links:
    """Reads addresses that can only be followed, by `Crawl.follow`. They never enter the sandbox, which is fastest.

    `name` is the attribute that has the address. Relative addresses are relative to the `<base href>` of the page, or
    else to its URL. Links stand in no `rows`: there, `attr` reads an address.

    The methods keep some of the links by their addresses, and each returns new links. They are called on a field of
    `reads`, or on the `Links` that were read. The crawler judges the addresses when the links are followed. It then
    takes only addresses of `http` and `https`, each of them once, and limit `requests` of a call counts only these.

    Example:
        "next": links("li.next a")
    """

    # Conditions: True if links have to be within the host, expressions that have to be found, and those that may not.
    _filter = None

    def __init__(self, css: str, name: str = "href") -> None:
        self.css, self.name = css, name

    def within_host(self) -> Self:
        """Keeps only links to the host that the page came from: same name, any scheme and port. Subdomains are other
        hosts.

        Example:
            "pages": links("a").within_host()
        """
        return self._with(within_host=True)

    def matching(self, pattern: str) -> Self:
        r"""Keeps only links in whose address this regular expression is found. If it is called several times, all
        expressions have to be found.

        The address is absolute and has no fragment. The expression is a text in the syntax of the crate `regex-lite`
        for Rust, which is not that of `re`. There are at most 32 expressions, each of at most 4 KiB. Raises `TypeError`
        if it is not a text. The crawl fails if the links are followed and the expression is malformed.

        Example:
            "books": links("a").matching(r"/books/\d+$")
        """
        return self._with(matching=pattern)

    def not_matching(self, pattern: str) -> Self:
        r"""Keeps only links in whose address this regular expression is not found. If it is called several times,
        none of the expressions may be found. They are written as for `matching`.

        Example:
            crawl.follow(page.extract("list")["next"].not_matching(r"\.(zip|pdf)$"), "list")
        """
        return self._with(not_matching=pattern)

    def _with(self, within_host=False, matching=None, not_matching=None):
        def more(patterns, pattern):
            # The crawler has other regular expressions than Python.
            if not (pattern is None or isinstance(pattern, str)):
                raise TypeError(f"a regular expression for links is a text, not {pattern!r}")
            return [*patterns, *([] if pattern is None else [_well_formed(pattern)])]

        is_within, wanted, unwanted = self._filter or (False, [], [])
        found = copy(self)
        found._filter = (is_within or within_host, more(wanted, matching), more(unwanted, not_matching))
        return found


class rows:
    """Reads every element that matches as a dict with these fields, as a list in the order of the page.

    Fields are read within the element. Their selectors are matched against the whole page, so they may name elements
    around it. An empty selector is the element itself, and one that begins with `>` matches its children. Fields may be
    rows too.

    Example:
        "books": rows("article.book", {"title": text("h3"), "href": attr("h3 a", "href"), "id": attr("", "data-id")})
    """

    def __init__(self, css: str, fields: Mapping[str, Value[Any] | rows]) -> None:
        self.css, self.fields = css, fields


class Links(links):
    """Links that `Page.extract` found for `links`, with the methods of `links`. `Crawl.follow` takes them, and an item
    cannot hold them.

    Example:
        crawl.follow(page.extract("list")["next"].within_host(), "list")
    """

    def __init__(self, declared: links, plan: int, field: int) -> None:
        super().__init__(declared.css, declared.name)
        self.plan, self.field, self._filter = plan, field, declared._filter


class RuleError(Exception):
    """Reason why a rule gives up on its page; `skip`, `retry`, `blocked` and `fatal` return one. Its text is `why`.

    Example:
        try:
            check(page)
        except RuleError as error:
            log.warn(f"gave up on {page.url}: {error}")
            raise
    """

    def __init__(self, reason: Any, why: str) -> None:
        super().__init__(why)
        self.reason = reason


def skip(why: object) -> RuleError:
    """Returns an error to raise if there is nothing to take from this page. The page counts as done.

    Example:
        raise skip("the shelf is empty")
    """
    words = _well_formed(why)
    return RuleError(types.RuleError_Skip(words), words)


def retry(why: object, after_ms: float | None = None) -> RuleError:
    """Returns an error to raise if the page is to be tried again.

    `after_ms` is the shortest wait in milliseconds, rounded up to a whole one; without it the back-off of the crawler
    decides. Setting `max-retry-wait` of the resource caps the wait, and `max-attempts` the number of attempts.
    Raises `TypeError` if `after_ms` is negative or not finite.

    Example:
        raise retry("the price is not there yet", after_ms=60_000)
    """
    words = _well_formed(why)
    if after_ms is not None:
        if not 0 <= after_ms < float("inf"):
            raise TypeError(f"a page is tried again in 0 ms or more, not {after_ms}")
        after_ms = ceil(after_ms)
    return RuleError(types.RuleError_Retry(types.Retry(after_ms, words, [])), words)


def blocked(why: object) -> RuleError:
    """Returns an error to raise if the site refuses us, for example by a captcha with status 200. The page is tried
    again after up to 30 seconds, then after up to twice as long. Other pages of the host do not wait for it.

    Example:
        raise blocked("a captcha")
    """
    words = _well_formed(why)
    return RuleError(types.RuleError_Blocked(words), words)


def fatal(why: object) -> RuleError:
    """Returns an error to raise if the crawl makes no sense any more. The whole crawl fails with this reason.

    Example:
        raise fatal("the login was refused")
    """
    words = _well_formed(why)
    return RuleError(types.RuleError_Fatal(words), words)


class log:
    """Lines of the log of the crawl, which `crawler resource logs` and `crawler plugin test` show. They are kept even
    if the call fails. The limits of a call bound their number.

    What is printed becomes lines too: `print` writes at level `info`, and `sys.stderr` at level `warn`.

    Example:
        log.warn(f"{page.url} has no price")
    """

    @staticmethod
    def debug(message: object) -> None:
        """Writes a detail.

        Example:
            log.debug(page.metadata)
        """
        lines.write(lines.Level.DEBUG, _well_formed(message))

    @staticmethod
    def info(message: object) -> None:
        """Writes something that an operator may like to know.

        Example:
            log.info("the catalogue has 40 pages")
        """
        lines.write(lines.Level.INFO, _well_formed(message))

    @staticmethod
    def warn(message: object) -> None:
        """Writes something odd but harmless.

        Example:
            log.warn(f"{page.url} has no price")
        """
        lines.write(lines.Level.WARN, _well_formed(message))

    @staticmethod
    def error(message: object) -> None:
        """Writes something that somebody has to look at.

        Example:
            log.error("the site has a layout unknown to this rule")
        """
        lines.write(lines.Level.ERROR, _well_formed(message))


class _Printed:
    """Stream whose lines become lines of the log."""

    def __init__(self, write):
        self._write, self._begun = write, ""

    def write(self, text):
        *whole, self._begun = (self._begun + text).split("\n")
        for line in whole:
            self._write(line)
        return len(text)

    def flush(self):
        pass

    def end(self):
        if self._begun:
            self.write("\n")


def _well_formed(text: object) -> str:
    """Returns a text without half characters, which the boundary does not know."""
    return str(text).encode(errors="replace").decode()


# Limits that the interpreter needs, unless the plugin asks for others.
_ROOM = {"memory": 256 << 20}


class Plugin:
    """A plugin: its name, what it reads and emits, and its rules.

    - `name`: name of the plugin, which `crawler resource add --plugin` takes.
    - `version`: semantic version, such as `1.2.0`. Once pushed, a name and version never change their bytes.
    - `items`: kinds of items with the JSON Schema of each, or `True` for any object. An item that does not fit its
      schema is refused. The keyword `x-key` of a schema names the field by which the next run knows an item again.
    - `reads`: fields that pages are read for, by the names that `Page.extract` takes. Each value is a dict of fields,
      made by `text`, `raw`, `inner`, `attr`, `tag`, `present`, `links` and `rows`.
    - `hosts`: hosts wanted beyond those of the root requests, such as `img.shop.example` or `*.shop.example`.
      `crawler plugin check` shows them; setting `scope` of a resource grants them.
    - `limits`: limits of a call to ask for, by the names of `--limit`, in bytes, milliseconds or pieces. The crawler
      grants `memory` only. Unless this says otherwise, a plugin in Python asks for 256 MiB.
    - `params`: params that a resource of this plugin takes, by name. Each is a dict with `about`, one sentence that
      tells what it is for, and perhaps with `default`, a string, or with `optional`, `True`. A param with neither has
      to be given. A resource with other params is refused; without `params` it may have any.

    Raises `TypeError` if a field is none of those above, or a param is not declared like this.

    Example:
        shop = Plugin(
            "shop",
            "0.1.0",
            items={"book": True},
            reads={"book": {"title": text("h1")}},
            params={
                "start": {"about": "Address of the first page"},
                "pages": {"about": "Number of list pages", "default": "10"},
                "language": {"about": "Language of the books", "optional": True},
            },
        )
    """

    def __init__(
        self,
        name: str,
        version: str,
        items: Mapping[str, Mapping[str, Any] | Literal[True]] | None = None,
        reads: Mapping[str, Mapping[str, Value[Any] | links | rows]] | None = None,
        hosts: Iterable[str] = (),
        limits: Mapping[str, int] | None = None,
        params: Mapping[str, Mapping[str, Any]] | None = None,
    ) -> None:
        self._name, self._version = name, version
        self._hints = [] if params is None else [("params", _params_schema(params))]
        self._items, self._hosts, self._limits = items or {}, list(hosts), limits or {}
        self._plans = [_Plan(plan, fields) for plan, fields in (reads or {}).items()]
        self._root, self._rules = None, {}

    def root(self, function: Callable[[Crawl], None]) -> Callable[[Crawl], None]:
        """Decorates the function that hands over the first requests. There is one in each plugin.

        It is called at least once for a run, and again by other machines and after a restart. Each time it has to hand
        over the same requests.

        Example:
            @shop.root
            def root(crawl: Crawl) -> None:
                crawl.follow(crawl.param("start"), "list")
        """
        self._root = function
        return function

    @overload
    def rule(self, named: str) -> Callable[[Callable[[Page, Crawl], None]], Callable[[Page, Crawl], None]]: ...

    @overload
    def rule(self, named: Callable[[Page, Crawl], None]) -> Callable[[Page, Crawl], None]: ...

    def rule(self, named):
        """Decorates a function that parses pages. The rule has the name of the function, or the one that is given.

        The function returns nothing and is neither `async` nor a generator; otherwise the call fails. Raises
        `TypeError` if there are two rules of one name.

        Example:
            @shop.rule("list")
            def listing(page: Page, crawl: Crawl) -> None:
                crawl.follow(page.extract("list")["next"], "list")
        """
        if isinstance(named, str):
            return lambda function: self._add(named, function)
        return self._add(named.__name__, named)

    def _add(self, name, function):
        if name in self._rules:
            raise TypeError(f"there are two rules {name}")
        self._rules[name] = function
        return function

    def rules(self) -> type:
        """Returns the class that the module of the plugin has to have under the name `Rules`. Raises `TypeError` if
        no function is decorated by `root`.

        Example:
            Rules = shop.rules()
        """
        plugin = self
        if self._root is None:
            raise TypeError("there is no @root, which hands over the first requests")

        class Rules:
            def describe(self):
                return plugin._described()

            def root(self):
                _called("root", lambda: plugin._root(Crawl(plugin)))

            def parse(self, rule):
                name = list(plugin._rules)[rule]
                _called(name, lambda: plugin._rules[name](Page(plugin), Crawl(plugin)))

        return Rules

    def _described(self):
        # Any object, where the shape of items is True.
        shape = lambda schema: "" if schema is True else json.dumps(schema)
        return types.Description(
            name=self._name,
            version=self._version,
            rules=[types.RuleInfo(name, []) for name in self._rules],
            schemas=[types.ItemSchema(name, shape(schema), []) for name, schema in self._items.items()],
            plans=[plan.described() for plan in self._plans],
            hosts=self._hosts,
            limits=list({**_ROOM, **self._limits}.items()),
            hints=self._hints,
        )


# Keys of a param as a plugin declares it.
_PARAM_KEYS = ["about", "default", "optional"]


def _params_schema(params):
    """Returns the JSON Schema of the params of a resource."""
    properties, required = {}, []
    for name, param in params.items():
        _check_param(name, param)
        properties[name] = {"type": "string", "description": param["about"]}
        if "default" in param:
            properties[name]["default"] = param["default"]
        elif not param.get("optional"):
            required.append(name)
    schema = {"type": "object", "properties": properties, "required": required, "additionalProperties": False}
    return _well_formed(json.dumps(schema, ensure_ascii=False, separators=(",", ":")))


def _check_param(name, param):
    def wrong(why):
        return TypeError(f"param {name!r}: {why}")

    if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z0-9._-]{1,128}", name):
        raise wrong("the name of a param has 1 to 128 letters, digits, -, _ and .")
    if not isinstance(param, dict):
        raise wrong('it is declared by a dict: {"about": "…"}')
    for key in param:
        if key not in _PARAM_KEYS:
            raise wrong(f"unknown key {key!r}; the keys are {', '.join(_PARAM_KEYS)}")
    about, optional = param.get("about"), param.get("optional", False)
    if not isinstance(about, str) or not about.strip():
        raise wrong("about is missing: one sentence that tells what it is for")
    if "default" in param and not isinstance(param["default"], str):
        raise wrong(f"default is a string, not {param['default']!r}")
    if not isinstance(optional, bool):
        raise wrong(f"optional is True or False, not {optional!r}")
    if optional and "default" in param:
        raise wrong("one with a default is never missing; leave out optional or default")


def _position(names, name, what):
    names = list(names)
    if name not in names:
        raise LookupError(f"there is no {what} {name!r}; there are: {', '.join(names)}")
    return names.index(name)


class _Refused:
    """Finder that is asked for a module last, and refuses it. The sandbox has no files: a search for one would end the
    interpreter without a word about the place."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        raise ImportError(f"{name} cannot be imported while a rule runs; import it at the top of the module")


def _refuse_files(event, arguments):
    """Refuses to open a file, for the same reason. A clock or the network still ends the call."""
    if event == "open":
        raise OSError(f"a rule cannot open {arguments[0]!r}: the sandbox has no files")


def _called(name, call):
    if sys.platform == "wasi":
        # Modules that are part of the interpreter itself need no file.
        own = ("BuiltinImporter", "FrozenImporter")
        within = [finder for finder in sys.meta_path if getattr(finder, "__name__", None) in own]
        sys.meta_path[:] = [*within, _Refused]
        sys.addaudithook(_refuse_files)
    sys.stdout, sys.stderr = printed = _Printed(log.info), _Printed(log.warn)
    try:
        returned = call()
        if returned is not None:
            # A coroutine or a generator that nobody runs: what it would do would be lost.
            getattr(returned, "close", lambda: None)()
            raise TypeError(f"{name} returned something: rules return nothing, and cannot yield or be async")
    except RuleError as error:
        raise Err(error.reason) from None
    except Exception as error:
        reason = _well_formed(_reason(error))
        places = [] if isinstance(error, Err) else _places(error)
        if places:
            lines.panic(reason, _well_formed(places[0]))
        if len(places) > 1:
            log.debug(f"{reason}, at {', at '.join(places[:_PLACES])}")
        raise Err(types.RuleError_Other((0, reason))) from None
    finally:
        for stream in printed:
            stream.end()


# Largest number of places that are told of a mistake.
_PLACES = 16
# Folder of the standard library.
_LIBRARY = json.__file__.rsplit("/", 2)[0] + "/"


def _places(error):
    """Returns the places where a mistake was made, innermost first: lines of the rules, without those of this file and
    of the standard library. A component has no source to show."""
    places = []
    for error in (error, error.__cause__):
        step = error.__traceback__ if error else None
        while step:
            code = step.tb_frame.f_code
            if code.co_filename != __file__ and not code.co_filename.startswith(("<", _LIBRARY)):
                # Each folder that modules are looked for in is mounted under its number.
                file = re.sub(r"^/\d+/", "", code.co_filename)
                places.append(f"{file}:{step.tb_lineno} in {code.co_name}")
            step = step.tb_next
    return places[::-1]


def _reason(error):
    """Returns a reason in words. What the host raises holds a variant; a mistake in a rule is any other exception."""
    if isinstance(error, Err):
        value = getattr(error.value, "value", error.value)
        return value if isinstance(value, str) else repr(value)
    return str(error) if isinstance(error, RuleError) or type(error) is ValueError else f"{type(error).__name__}: {error}"


class Page:
    """The page of a call, which each rule gets. What is not asked for does not enter the sandbox.

    Example:
        log.info(f"{page.url}: {page.status}, attempt {page.attempt}")
    """

    def __init__(self, plugin: Plugin) -> None:
        self._plans = plugin._plans

    @property
    def url(self) -> str:
        """Address that the answer came from, after redirects.

        Example:
            crawl.emit("book", {"url": page.url})
        """
        return host.url()

    @property
    def requested_url(self) -> str:
        """Address that was asked for.

        Example:
            is_moved = page.url != page.requested_url
        """
        return host.requested_url()

    @property
    def status(self) -> int:
        """Status of the answer: from 200 to 299, or one that `accept_status` of its request names.

        Example:
            if page.status == 404:
                crawl.emit("book", {"url": page.url, "lost": True})
        """
        return host.status()

    @property
    def headers(self) -> list[tuple[str, str]]:
        """All headers as pairs of name and value, in the order received. Names are in lower case.

        Example:
            cookies = [value for name, value in page.headers if name == "set-cookie"]
        """
        return host.headers()

    def header(self, name: str) -> str | None:
        """Returns the value of the first header of this name, in any case, or `None`.

        Example:
            modified = page.header("Last-Modified")
        """
        return host.header(name)

    @property
    def redirects(self) -> list[str]:
        """Every address on the way, without the last.

        Example:
            n_redirects = len(page.redirects)
        """
        return host.redirects()

    @property
    def fetched_at(self) -> int:
        """Time of the answer, in milliseconds since 1970.

        Example:
            crawl.emit("book", {"url": page.url, "seen": page.fetched_at // 1000})
        """
        return host.fetched_at()

    @property
    def charset(self) -> str:
        """Encoding that `text` was decoded from, by its WHATWG name, such as `UTF-8`.

        Example:
            is_utf_8 = page.charset == "UTF-8"
        """
        return host.charset()

    @property
    def metadata(self) -> dict[str, str]:
        """Entries about the fetch, as far as they are known: the source of the charset (`charset-source`), the server
        (`address`, `http-version`, `proxy`), the milliseconds that each part took (`wait-ms`, `lookup-ms`,
        `connect-ms`, `first-byte-ms`, `body-ms`) and the number of bytes received (`body-bytes`).

        Example:
            address = page.metadata.get("address")
        """
        return dict(host.metadata())

    @property
    def kept(self) -> dict[str, Any] | None:
        """File that the body is kept as: its `digest`, which is its name, its `size` in bytes, and its `media_type` in
        lower case, or `None` if the answer names none.

        It is `None` if the request did not ask for it with `keep_body`, for a status that is not one of 200 to 299, for
        a part of a body (206), and for an answer to `HEAD`.

        Example:
            if page.kept:
                crawl.emit("picture", {"url": page.url, "file": page.kept["digest"]})
        """
        known = self.metadata
        if "kept-digest" not in known:
            return None
        size, media_type = int(known["kept-bytes"]), known.get("kept-type")
        return {"digest": known["kept-digest"], "size": size, "media_type": media_type}

    @property
    def truncated(self) -> bool:
        """True if the body was longer than limit `body` of a call, and is cut.

        Example:
            if page.truncated:
                log.warn(f"{page.url} is cut")
        """
        return host.truncated()

    @property
    def depth(self) -> int:
        """Number of links between a root request (0) and this page.

        Example:
            if page.depth < 3:
                crawl.follow("/more", "list")
        """
        return host.depth()

    @property
    def state(self) -> str:
        """Text that the request carried, see `Crawl.follow`; empty without one.

        Example:
            crawl.emit("book", {"url": page.url, "shelf": page.state})
        """
        return host.state().decode()

    @property
    def referrer(self) -> str | None:
        """Address of the page whose link was first to lead here, or `None` for a root request.

        It is `None` too for an address of more than 2 KiB, and for a link that was stored by a crawler that knew no
        referrers.

        Example:
            crawl.emit("broken_link", {"url": page.requested_url, "referrer": page.referrer})
        """
        return host.referrer()

    @property
    def attempt(self) -> int:
        """Number of this attempt at the page, from 1.

        Example:
            if page.status == 503 and page.attempt < 3:
                raise retry("the server is busy")
        """
        return host.attempt()

    @property
    def text(self) -> str:
        """Body, decoded to Unicode.

        Example:
            is_login = "Please log in" in page.text
        """
        return host.text()

    @property
    def body(self) -> bytes:
        """Body as received, without its content-encoding.

        Example:
            is_pdf = page.body.startswith(b"%PDF")
        """
        return host.body()

    def json(self) -> Any:
        """Returns the body as JSON. Raises `json.JSONDecodeError`, a `ValueError`, if it is none.

        Example:
            for book in page.json()["books"]:
                crawl.emit("book", {"title": book["title"]})
        """
        return json.loads(host.text())

    def extract(self, name: str) -> dict[str, Any]:
        """Returns what `reads` of the plugin declares under this name: a dict with the value of each field.

        Raises `LookupError` if the plugin declares no such name, and `ValueError` if a field is missing or a function
        of `map` raises. If the page has more than limits `captures` and `capture-bytes` of a call allow, the rest is
        left out.

        Example:
            found = page.extract("book")
            crawl.emit("book", {"url": page.url, "title": found["title"]})
        """
        at = _position([plan.name for plan in self._plans], name, "reading")
        return self._plans[at].read(at, host.extract(at))


class Crawl:
    """The crawl of a call, which takes its items and requests. They are kept only if the call ends well.

    Example:
        crawl.follow("/page-2.html", "list")
    """

    def __init__(self, plugin: Plugin) -> None:
        self._plugin = plugin

    @overload
    def param(self, name: str) -> str: ...

    @overload
    def param(self, name: str, otherwise: T) -> str | T: ...

    def param(self, name, otherwise=_NOTHING):
        """Returns a param of the resource, or else its declared default, or else `otherwise`.

        Without any of them it raises a `RuleError` by which the crawl fails.

        Example:
            n_pages = int(crawl.param("pages", "10"))
        """
        value = config.get(name)
        if value is not None:
            return value
        if otherwise is _NOTHING:
            raise fatal(f"param {name} is missing: add --param {name}=VALUE")
        return otherwise

    @property
    def params(self) -> dict[str, str]:
        """All params of the resource, with the defaults that the plugin declares.

        Example:
            log.debug(crawl.params)
        """
        return dict(config.all())

    def emit(self, kind: str, value: Mapping[str, Any]) -> None:
        """Emits one item of a kind that `items` of the plugin declares.

        The value is a dict that `json.dumps` can write. Raises `LookupError` if the plugin declares no such kind, and
        `TypeError` if JSON has no form for a part of the value. The crawler refuses an item that does not fit its
        schema, and more items than limits `items` and `item-bytes` of a call allow.

        Example:
            crawl.emit("book", {"url": page.url, "title": "The Waves"})
        """
        number = _position(self._plugin._items, kind, "kind of items")
        written = json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=_unwritable)
        output.emit(number, _well_formed(written))

    def follow(
        self,
        what: str | Iterable[str] | Links,
        rule: str,
        *,
        priority: int = 0,
        state: str = "",
        reload: bool = False,
        accept_status: int | str | Iterable[int | str] | None = (),
        keep_body: bool = False,
        method: str | None = None,
        headers: Mapping[str, object] | None = None,
        body: str | bytes | None = None,
    ) -> None:
        """Adds pages to fetch next: one address, several, or links that were read. The rule parses their answers.

        Addresses are absolute, or relative to the page of this call. The crawler drops those that this run has
        already seen, and those outside of the scope of the resource. It leaves out what is no address; in `root` it
        refuses that.

        - `priority`: whole number of 32 bits, from -2147483648 to 2147483647. Pages of a higher one come first among
          the ready pages of a host.
        - `state`: text of up to 4 KiB in UTF-8, handed back unchanged as `Page.state`.
        - `reload`: `True` fetches a page even if this run has already seen it.
        - `accept_status`: statuses that the rule gets in addition to 200 to 299: a number, a range like `"500-599"`,
          `"any"`, or several of them. A page with such a status is final: it is neither tried again nor given up.
        - `keep_body`: `True` keeps the bodies of answers with a status of 200 to 299 as files, see `Page.kept`. A part of
          a body (206) and an answer to `HEAD` are not kept.
        - `method`: `GET` unless it is given, also if there is a body.
        - `headers`: further headers by name. The crawler refuses those that it sets itself, such as `host`.
        - `body`: text, sent in UTF-8, or bytes. A request with another body is another page.

        Links have no `method`, `headers` and `body`. Raises `LookupError` if the plugin has no such rule, and
        `TypeError` if an argument has another type, or links have one of these three. The crawler refuses a state that
        is too long, a status that is none, and more requests than limit `requests` of a call allows.

        Example:
            crawl.follow("/books?page=2", "list", priority=1, state="poetry")
            crawl.follow("/search", "list", method="POST", body="q=waves", accept_status=[404, "500-599"])
        """
        number = _position(self._plugin._rules, rule, "rule")
        if not isinstance(priority, int) or not -(2**31) <= priority < 2**31:
            raise TypeError(f"priority is a whole number of 32 bits, not {priority}")
        if not isinstance(state, str):
            raise TypeError(f"state is a text, not {type(state).__name__}")
        state, reload = _well_formed(state).encode(), bool(reload)
        hints = [*_accepting(accept_status), *_keeping(keep_body)]
        if isinstance(what, Links):
            if method or headers or body:
                raise TypeError("links have no method, headers or body; use attr")
            options = types.FollowOptions(priority, state, reload, hints)
            if what._filter is None:
                output.follow_field(what.plan, what.field, number, options)
            elif positions := _chosen(what):
                output.follow_captures(what.plan, what.field, positions, number, options)
            return
        if not (body is None or isinstance(body, (str, bytes))):
            raise TypeError("body is a text or bytes")
        body = _well_formed(body).encode() if isinstance(body, str) else body
        headers = [(name, _well_formed(value)) for name, value in (headers or {}).items()]
        requests = []
        for url in [what] if what is None or isinstance(what, (str, bytes)) else what:
            if not isinstance(url, str):
                raise TypeError(f"an address is a text, not {url}")
            url, method = _well_formed(url), method or "GET"
            requests.append(types.Request(url, method, headers, body, number, priority, state, reload, hints))
        if requests:
            output.follow(requests)


def _accepting(statuses):
    """Returns the hint that asks for these statuses."""
    if statuses is None:
        return []
    is_one = isinstance(statuses, str) or not isinstance(statuses, Iterable)
    several = [statuses] if is_one else list(statuses)
    for status in several:
        if isinstance(status, bool) or not isinstance(status, (int, str)):
            raise TypeError(f"accept_status is a number, a text or several of them, not {status!r}")
    return [("accept-status", ",".join(map(str, several)))] if several else []


def _keeping(is_kept):
    """The hint that asks to keep the body."""
    if not isinstance(is_kept, bool):
        raise TypeError(f"keep_body is True or False, not {is_kept!r}")
    return [("keep-body", "true")] if is_kept else []


def _unwritable(value):
    if isinstance(value, Links):
        raise TypeError(f"the links of {value.css} can only be followed; to read addresses use attr")
    raise TypeError(f"an item has no place for a {type(value).__name__}")


def _chosen(found):
    """Returns the positions of the links that fit: the crawler judges each address once."""
    conditions = types.LinkFilter(*found._filter, distinct=True, hints=[])
    try:
        return host.choose_links(found.plan, found.field, conditions)
    except Err as error:
        if isinstance(error.value, types.ChooseError_Refused):
            raise fatal(error.value.value) from None
        if isinstance(error.value, types.ChooseError_Unread):
            raise Err(error.value.value) from None
        raise


class _Plan:
    """One entry of `reads`: numbered for the boundary, and read back by those numbers."""

    def __init__(self, name, fields):
        self.name, self._groups, self._fields = name, [], []
        self._shape = self._number(fields, None, "")

    def _number(self, fields, group, path):
        shape = []
        for key, declared in fields.items():
            name = path + key
            if isinstance(declared, rows):
                self._groups.append(types.Group(name, group, declared.css, []))
                at = len(self._groups) - 1
                shape.append((key, at, declared, self._number(declared.fields, at, name + ".")))
            elif isinstance(declared, links):
                if group is not None:
                    raise TypeError(f"{name}: links stand beside rows; within them use attr")
                take = types.Take_Attr(declared.name)
                shape.append((key, self._field(name, group, declared.css, take, False, False), declared, None))
            elif isinstance(declared, Value):
                first = not declared.every
                field = self._field(name, group, declared.css, declared.take, first, True)
                shape.append((key, field, declared, None))
            else:
                raise TypeError(f"{name} is none of text, attr, links, rows and so on")
        return shape

    def _field(self, name, group, css, take, first, keep):
        self._fields.append(types.Field(name, group, css, take, first, keep, []))
        return len(self._fields) - 1

    def described(self):
        return types.Plan(self.name, self._groups, self._fields, [])

    def read(self, plan, captures):
        # Spans are in bytes.
        text = captures.text.encode()
        # The captures of each field and the rows of each group, by the row around them.
        found = [(column.spans, _by_row(column.rows)) for column in captures.columns]
        nested = [_by_row(parents) for parents in captures.groups]

        def texts(field, row):
            spans, by_row = found[field]
            return [text[spans[2 * n] : spans[2 * n + 1]].decode() for n in by_row.get(row, [])]

        def of_row(shape, row):
            values = {}
            for key, at, declared, within in shape:
                if isinstance(declared, rows):
                    values[key] = [of_row(within, n) for n in nested[at].get(row, [])]
                elif isinstance(declared, links):
                    values[key] = Links(declared, plan, at)
                else:
                    values[key] = _value(self._fields[at].name, declared, texts(at, row))
            return values

        return of_row(self._shape, NO_ROW)


def _by_row(rows):
    """Returns the positions of each row. They are looked for once, since there may be tens of thousands."""
    positions = {}
    for n, row in enumerate(rows):
        positions.setdefault(row, []).append(n)
    return positions


def _value(name, declared, texts):
    def changed(text):
        try:
            return declared.change(text)
        except RuleError:
            raise
        except Exception as error:
            quoted = json.dumps(text, ensure_ascii=False)
            raise ValueError(f"`{name}` ({declared.css}) is {quoted}: {_reason(error)}") from error

    if declared.presence:
        return changed(bool(texts))
    if declared.every:
        return [changed(text) for text in texts]
    if texts:
        return changed(texts[0])
    if declared.missing:
        return declared.missing()
    raise ValueError(f"the page lacks `{name}`: nothing matches {declared.css or 'its row'}")
