"""The boundary for the SDK, which notes what is followed, and requests for statuses."""

import sys
from types import SimpleNamespace
from unittest.mock import MagicMock


class Err(Exception):
    pass


imports = MagicMock()
imports.page.referrer.return_value = None
imports.page.extract.return_value = SimpleNamespace(
    text="", groups=[], columns=[SimpleNamespace(rows=[], spans=[])]
)
sys.modules["componentize_py_types"] = SimpleNamespace(Err=Err)
sys.modules["wit_world"] = SimpleNamespace(imports=imports)
sys.modules["wit_world.imports"] = imports

from crawler import Plugin, links


def hints(**options):
    """Calls a rule that follows an address and links with these statuses; returns the hints of both."""
    shop = Plugin("shop", "0.1.0", reads={"page": {"links": links("a")}})
    shop.root(lambda crawl: None)

    @shop.rule
    def page(page, crawl):
        assert page.referrer is None
        crawl.follow("/x", "page", **options)
        crawl.follow(page.extract("page")["links"], "page", **options)

    # A call takes what is printed for lines of the log.
    streams = sys.stdout, sys.stderr
    try:
        shop.rules()().parse(0)
    finally:
        sys.stdout, sys.stderr = streams
    of_request, of_links = imports.types.Request.call_args.args[-1], imports.types.FollowOptions.call_args.args[-1]
    assert of_request == of_links, (of_request, of_links)
    return of_request


assert hints() == []
assert hints(accept_status=[]) == []
assert hints(accept_status=None) == []
assert hints(accept_status=404) == [("accept-status", "404")]
assert hints(accept_status="any") == [("accept-status", "any")]
assert hints(accept_status=(404, "500-599")) == [("accept-status", "404,500-599")]
assert hints(accept_status=range(500, 503)) == [("accept-status", "500,501,502")]
for unfit in [True, [None], 4.04]:
    try:
        hints(accept_status=unfit)
    except Err:
        reason = imports.types.RuleError_Other.call_args.args[0]
        assert "accept_status is a number" in str(reason), reason
        # The line of the rule comes with it, not that of the SDK.
        place = imports.log.panic.call_args.args[1].rsplit("/", 1)[-1]
        assert place.startswith("statuses.py:") and place.endswith(" in page"), place
        continue
    raise AssertionError(f"{unfit} was taken")
print("as expected")
