"""The plugin SDK for Python: rules as plain functions, pages read by the crawler in one pass.

    from crawler import Plugin, attr, links, text

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
    def root(crawl):
        crawl.follow(crawl.param("start"), "list")

    @shop.rule("list")
    def listing(page, crawl):
        found = page.extract("list")
        crawl.follow(found["books"], "detail")
        crawl.follow(found["next"], "list")

    @shop.rule
    def detail(page, crawl):
        crawl.emit("book", {"url": page.url, **page.extract("book")})

    Rules = shop.rules()

What a selector may say, and what each error means, is told in the documentation of the SDK for Rust; the
boundary, rules.wit, is the same for all languages.
"""

import json
import re
import sys
from collections.abc import Iterable
from copy import copy
from math import ceil

from componentize_py_types import Err
from wit_world.imports import config, log as lines, output, page as host, types

# What the boundary has for no row.
NO_ROW = 0xFFFFFFFF

_NOTHING = object()


class Value:
    """What of an element is read, and how it becomes a value. Each method gives a new one."""

    def __init__(self, css, take, every=False, presence=False, missing=None, change=lambda text: text):
        self.css, self.take, self.every, self.presence = css, take, every, presence
        self.missing, self.change = missing, change

    def _with(self, **parts):
        return Value(**{**vars(self), **parts})

    def all(self):
        """All that match, as a list; without it the first, which has to be there."""
        return self._with(every=True)

    def optional(self):
        """`None` where nothing matches."""
        return self.otherwise(None)

    def otherwise(self, value):
        """This value where nothing matches."""
        return self._with(missing=lambda: value)

    def map(self, change):
        """Made of each text by a function. What it raises says which field it was."""
        before = self.change
        return self._with(change=lambda text: change(before(text)))


def text(css):
    """The text of an element, white space folded."""
    return Value(css, types.Take_Text())


def raw(css):
    """Its text with all white space as written."""
    return Value(css, types.Take_TextRaw())


def inner(css):
    """What stands between its tags, as written."""
    return Value(css, types.Take_Inner())


def attr(css, name):
    """An attribute; an element without it is passed over."""
    return Value(css, types.Take_Attr(name))


def tag(css):
    """The name of the element: `h2`."""
    return Value(css, types.Take_Tag())


def present(css):
    """Whether there is one."""
    return Value(css, types.Take_Present(), presence=True)


class _Filtered:
    """Addresses, or those of them that meet conditions. Each method gives new ones."""

    _filter = None

    def within_host(self):
        """Keeps those of the host that the page came from: same name, any scheme and port."""
        return self._with(within_host=True)

    def matching(self, pattern):
        """Keeps those in whose absolute address this regular expression is found, in the syntax of regex-lite."""
        return self._with(matching=pattern)

    def not_matching(self, pattern):
        """Keeps those in whose absolute address this regular expression is not found."""
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


class links(_Filtered):
    """Addresses that can only be followed: they never enter the sandbox, which is fastest. Their methods tell them
    apart."""

    def __init__(self, css, name="href"):
        self.css, self.name = css, name


class rows:
    """Every element that matches as a dict with these fields; they are looked for within it."""

    def __init__(self, css, fields):
        self.css, self.fields = css, fields


class RuleError(Exception):
    """Why a rule gave up on a page. Anything else that is raised ends the call as an error too."""

    def __init__(self, reason, why):
        super().__init__(why)
        self.reason = reason


def skip(why):
    """There is nothing to take from this page; it counts as done."""
    why = _well_formed(why)
    return RuleError(types.RuleError_Skip(why), why)


def retry(why, after_ms=None):
    """The page is tried again, in so many milliseconds at the earliest."""
    why = _well_formed(why)
    if after_ms is not None:
        if not 0 <= after_ms < float("inf"):
            raise TypeError(f"a page is tried again in 0 ms or more, not {after_ms}")
        after_ms = ceil(after_ms)
    return RuleError(types.RuleError_Retry(types.Retry(after_ms, why, [])), why)


def blocked(why):
    """The site refuses us: the page is tried again, the host is slowed down."""
    why = _well_formed(why)
    return RuleError(types.RuleError_Blocked(why), why)


def fatal(why):
    """The crawl makes no sense any more."""
    why = _well_formed(why)
    return RuleError(types.RuleError_Fatal(why), why)


class log:
    """Lines for whoever runs the crawl."""

    @staticmethod
    def debug(message):
        lines.write(lines.Level.DEBUG, _well_formed(message))

    @staticmethod
    def info(message):
        lines.write(lines.Level.INFO, _well_formed(message))

    @staticmethod
    def warn(message):
        lines.write(lines.Level.WARN, _well_formed(message))

    @staticmethod
    def error(message):
        lines.write(lines.Level.ERROR, _well_formed(message))


class _Printed:
    """What is printed becomes lines."""

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


def _well_formed(text):
    """The boundary knows no half characters."""
    return str(text).encode(errors="replace").decode()


# What a call needs beside its page where an interpreter runs it: limits, unless the plugin says otherwise.
_ROOM = {"memory": 256 << 20}


class Plugin:
    """A plugin: its name, what it reads and emits, and its rules."""

    def __init__(self, name, version, items=None, reads=None, hosts=(), limits=None, params=None):
        self._name, self._version = name, version
        self._hints = [] if params is None else [("params", _params_schema(params))]
        self._items, self._hosts, self._limits = items or {}, list(hosts), limits or {}
        self._plans = [_Plan(plan, fields) for plan, fields in (reads or {}).items()]
        self._root, self._rules = None, {}

    def root(self, function):
        """The function that hands over the first requests."""
        self._root = function
        return function

    def rule(self, named):
        """A function that parses pages. The rule is called as it is, or as is said: `@shop.rule("list")`."""
        if isinstance(named, str):
            return lambda function: self._add(named, function)
        return self._add(named.__name__, named)

    def _add(self, name, function):
        if name in self._rules:
            raise TypeError(f"there are two rules {name}")
        self._rules[name] = function
        return function

    def rules(self):
        """What has to be called `Rules` in the module of the plugin."""
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
    """The JSON Schema that the host holds the params of a resource to."""
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
    """The last to be asked for a module: the sandbox has no files, so that the interpreter would be ended by the
    search for one without a word about where."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        raise ImportError(f"{name} cannot be imported while a rule runs; import it at the top of the module")


def _refuse_files(event, arguments):
    """The same for files. What is looked for elsewhere, a clock or the network, still ends the call."""
    if event == "open":
        raise OSError(f"a rule cannot open {arguments[0]!r}: the sandbox has no files")


def _called(name, call):
    if sys.platform == "wasi":
        # Modules that are part of the interpreter itself need no file.
        within = [finder for finder in sys.meta_path if finder.__name__ in ("BuiltinImporter", "FrozenImporter")]
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


# How many places of a mistake are told.
_PLACES = 16
# Where the standard library lies.
_LIBRARY = json.__file__.rsplit("/", 2)[0] + "/"


def _places(error):
    """Where a mistake was made, innermost first: the lines of the rules, not ours and not those of the standard
    library. What stands in them is not there to be shown."""
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
    """In words: what the host raises holds a variant, a mistake in a rule is any other exception."""
    if isinstance(error, Err):
        value = getattr(error.value, "value", error.value)
        return value if isinstance(value, str) else repr(value)
    return str(error) if isinstance(error, RuleError) or type(error) is ValueError else f"{type(error).__name__}: {error}"


class Page:
    """The page of this call. What is not asked for does not enter the sandbox."""

    def __init__(self, plugin):
        self._plans = plugin._plans

    @property
    def url(self):
        """Where the answer came from, after redirects."""
        return host.url()

    @property
    def requested_url(self):
        """What was asked for."""
        return host.requested_url()

    @property
    def status(self):
        return host.status()

    @property
    def headers(self):
        """All headers as (name, value), in the order received."""
        return host.headers()

    def header(self, name):
        """The first header of this name, or None."""
        return host.header(name)

    @property
    def redirects(self):
        """Every address on the way, without the last."""
        return host.redirects()

    @property
    def fetched_at(self):
        """Milliseconds since 1970."""
        return host.fetched_at()

    @property
    def charset(self):
        """The encoding that the text was decoded from."""
        return host.charset()

    @property
    def metadata(self):
        """How the page was got, by names that rules.wit lists."""
        return dict(host.metadata())

    @property
    def truncated(self):
        """The body was longer than the limit, and is cut."""
        return host.truncated()

    @property
    def depth(self):
        """Links between the root requests (0) and this page."""
        return host.depth()

    @property
    def state(self):
        """The text that the request carried."""
        return host.state().decode()

    @property
    def referrer(self):
        """The address of the page whose link was first to lead here; None for a root request."""
        return host.referrer()

    @property
    def attempt(self):
        """1 for the first attempt."""
        return host.attempt()

    @property
    def text(self):
        """The body, decoded."""
        return host.text()

    @property
    def body(self):
        """The body as received."""
        return host.body()

    def json(self):
        """The body as JSON."""
        return json.loads(host.text())

    def extract(self, name):
        """What was declared under this name in `reads`."""
        at = _position([plan.name for plan in self._plans], name, "reading")
        return self._plans[at].read(at, host.extract(at))


class Crawl:
    """Where results go. Kept only if the call ends well."""

    def __init__(self, plugin):
        self._plugin = plugin

    def param(self, name, otherwise=_NOTHING):
        """A param of the resource, or its declared default, or `otherwise`; without any of them the crawl fails."""
        value = config.get(name)
        if value is not None:
            return value
        if otherwise is _NOTHING:
            raise fatal(f"param {name} is missing: add --param {name}=VALUE")
        return otherwise

    @property
    def params(self):
        """All params."""
        return dict(config.all())

    def emit(self, kind, value):
        """One item of a kind that `items` declares."""
        number = _position(self._plugin._items, kind, "kind of items")
        written = json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=_unwritable)
        output.emit(number, _well_formed(written))

    def follow(
        self, what, rule, *, priority=0, state="", reload=False, accept_status=(), method=None, headers=None, body=None
    ):
        """Pages to fetch next: an address, several, or links that were read. `state` is a text that comes
        back with the page; `accept_status` names statuses that the rule gets in addition to 200 to 299: a number, a
        text like "500-599" or "any", or several of them (also a range); `method`, `headers` (a dict) and `body` (a
        text or bytes) are of addresses."""
        number = _position(self._plugin._rules, rule, "rule")
        if not isinstance(priority, int) or not -(2**31) <= priority < 2**31:
            raise TypeError(f"priority is a whole number, not {priority}")
        if not isinstance(state, str):
            raise TypeError(f"state is a text, not {type(state).__name__}")
        state, reload, hints = _well_formed(state).encode(), bool(reload), _accepting(accept_status)
        if isinstance(what, _Links):
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
    """The hint that asks for these statuses."""
    if statuses is None:
        return []
    is_one = isinstance(statuses, str) or not isinstance(statuses, Iterable)
    several = [statuses] if is_one else list(statuses)
    for status in several:
        if isinstance(status, bool) or not isinstance(status, (int, str)):
            raise TypeError(f"accept_status is a number, a text or several of them, not {status!r}")
    return [("accept-status", ",".join(map(str, several)))] if several else []


def _unwritable(value):
    if isinstance(value, _Links):
        raise TypeError(f"the links of {value.css} can only be followed; to read addresses use attr")
    raise TypeError(f"an item has no place for a {type(value).__name__}")


class _Links(_Filtered):
    def __init__(self, declared, plan, field):
        self.css, self.plan, self.field, self._filter = declared.css, plan, field, declared._filter


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
                    values[key] = _Links(declared, plan, at)
                else:
                    values[key] = _value(self._fields[at].name, declared, texts(at, row))
            return values

        return of_row(self._shape, NO_ROW)


def _by_row(rows):
    """What stands in each row, by position: looked for once, since both may be tens of thousands."""
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
