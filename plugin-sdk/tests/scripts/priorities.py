"""The boundary for the SDK, which notes the priorities of requests."""

import sys
from types import SimpleNamespace
from unittest.mock import MagicMock


class Err(Exception):
    pass


imports = MagicMock()
sys.modules["componentize_py_types"] = SimpleNamespace(Err=Err)
sys.modules["wit_world"] = SimpleNamespace(imports=imports)
sys.modules["wit_world.imports"] = imports

from crawler import Plugin


def call(**options):
    """Calls a rule that follows an address with these options; returns the priority of its request."""
    shop = Plugin("shop", "0.1.0")
    shop.root(lambda crawl: None)

    @shop.rule
    def page(page, crawl):
        crawl.follow("/7", "page", **options)

    # A call takes what is printed for lines of the log.
    streams = sys.stdout, sys.stderr
    try:
        shop.rules()().parse(0)
    finally:
        sys.stdout, sys.stderr = streams
    return imports.types.Request.call_args.args[5]


assert call() == 0
for fit in [-(2**31), -1, 0, 1, 2**31 - 1]:
    assert call(priority=fit) == fit
for unfit in [-(2**31) - 1, 2**31, 2**32, 1.5, "1", None]:
    try:
        call(priority=unfit)
    except Err:
        reason = imports.types.RuleError_Other.call_args.args[0]
        assert f"priority is a whole number of 32 bits, not {unfit}" in str(reason), reason
        continue
    raise AssertionError(f"{unfit} was taken")
print("as expected")
