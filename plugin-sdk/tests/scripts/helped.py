"""The SDK outside of a component: `help` shows it, and nothing of it can be used."""

import pydoc

import crawler

shown = pydoc.plain(pydoc.render_doc(crawler))
for name in crawler.__all__:
    assert name in shown, name
assert "milliseconds since 1970" in shown
try:
    crawler.text("h1")
except AttributeError as error:
    assert "`crawler plugin test`" in str(error), error
else:
    raise AssertionError("there is a boundary")
print("as expected")
