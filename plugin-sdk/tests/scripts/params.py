"""The boundary for the SDK, which is not called, and plugins that declare params."""

import sys
from types import SimpleNamespace
from unittest.mock import MagicMock

imports = MagicMock()
imports.types.Description = SimpleNamespace
sys.modules["componentize_py_types"] = SimpleNamespace(Err=Exception)
sys.modules["wit_world"] = SimpleNamespace(imports=imports)
sys.modules["wit_world.imports"] = imports

from crawler import Plugin


def described(**parts):
    shop = Plugin("shop", "0.1.0", **parts)
    shop.root(lambda crawl: None)
    return shop.rules()().describe().hints


assert described() == []
nothing = '{"type":"object","properties":{},"required":[],"additionalProperties":false}'
assert described(params={}) == [("params", nothing)]
params = {
    "start": {"about": "First £ page", "default": "http://shop.test/"},
    "login": {"about": "Account name"},
    "pages": {"about": "Number of pages", "optional": True},
}
schema = (
    '{"type":"object","properties":{"start":{"type":"string","description":"First £ page","default":"http://shop.test/"},'
    '"login":{"type":"string","description":"Account name"},"pages":{"type":"string","description":"Number of pages"}},'
    '"required":["login"],"additionalProperties":false}'
)
assert described(params=params) == [("params", schema)], described(params=params)

about = "Number of pages"
for param, message in [
    ({"default": "1"}, "param 'pages': about is missing: one sentence that tells what it is for"),
    ({"about": " "}, "param 'pages': about is missing: one sentence that tells what it is for"),
    ({"abuot": about}, "param 'pages': unknown key 'abuot'; the keys are about, default, optional"),
    ({"about": about, "default": 10}, "param 'pages': default is a string, not 10"),
    ({"about": about, "default": None}, "param 'pages': default is a string, not None"),
    ({"about": about, "optional": "yes"}, "param 'pages': optional is True or False, not 'yes'"),
    (
        {"about": about, "default": "10", "optional": True},
        "param 'pages': one with a default is never missing; leave out optional or default",
    ),
    (about, "param 'pages': it is declared by a dict: {\"about\": \"…\"}"),
]:
    try:
        described(params={"pages": param})
        raise AssertionError(f"{param} was taken")
    except TypeError as error:
        assert str(error) == message, error
try:
    described(params={"a=b": {"about": about}})
    raise AssertionError("a name with = was taken")
except TypeError:
    pass
print("as expected")
