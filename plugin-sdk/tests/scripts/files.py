"""The boundary for the SDK, which notes what is followed, and bodies that are kept."""

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


def call(metadata=(), **options):
    """Calls a rule that follows an address with these options; returns the hints of its request, and the kept body."""
    imports.page.metadata.return_value = metadata
    found = []
    album = Plugin("album", "0.1.0")
    album.root(lambda crawl: None)

    @album.rule
    def page(page, crawl):
        found.append(page.kept)
        crawl.follow("/7.png", "page", **options)

    # A call takes what is printed for lines of the log.
    streams = sys.stdout, sys.stderr
    try:
        album.rules()().parse(0)
    finally:
        sys.stdout, sys.stderr = streams
    return imports.types.Request.call_args.args[-1], found[0]


assert call() == ([], None)
assert call(keep_body=False)[0] == []
assert call(accept_status=404, keep_body=True)[0] == [("accept-status", "404"), ("keep-body", "true")]
metadata = [("body-bytes", "4"), ("kept-digest", "ab12"), ("kept-bytes", "3")]
assert call(metadata)[1] == {"digest": "ab12", "size": 3, "media_type": None}
metadata.append(("kept-type", "image/png"))
assert call(metadata)[1] == {"digest": "ab12", "size": 3, "media_type": "image/png"}
for unfit in ["true", 1, None]:
    try:
        call(keep_body=unfit)
    except Err:
        reason = imports.types.RuleError_Other.call_args.args[0]
        assert "keep_body is True or False" in str(reason), reason
        continue
    raise AssertionError(f"{unfit} was taken")
print("as expected")
