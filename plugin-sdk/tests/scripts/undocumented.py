"""Names that the reference of the SDK refuses to leave out, each with its place."""

import ast

import reference

LISTED = '__all__ = ["text"]\n'
DOC = '    """Reads a text.\n\n    Example:\n        text("h1")\n    """\n'


def told(code):
    try:
        return [(name.title, name.signatures) for name in reference.names(ast.parse(code))]
    except SystemExit as error:
        return str(error)


for code, expected in [
    (LISTED + "def text(css: str) -> str:\n" + DOC, [("text", ["text(css: str) -> str"])]),
    (
        "__all__ = []\ndef text(css: str) -> str:\n" + DOC,
        "crawler.py:2: text is not in __all__: add it, or begin its name with _",
    ),
    (LISTED, "crawler.py:1: __all__ has text, which is not there"),
    (LISTED + "def text(css) -> str:\n" + DOC, "crawler.py:2: parameter css of text has no type"),
    (LISTED + "def text(css: str):\n" + DOC, "crawler.py:2: text says no type of its result"),
    (LISTED + "def text(css: str) -> str:\n    pass\n", "crawler.py:2: text has no docstring"),
    (
        LISTED + 'def text(css: str) -> str:\n    """Reads a text."""\n',
        "crawler.py:2: the docstring of text has no example: end it with a line `Example:` and indented code",
    ),
    (
        LISTED + "class text:\n" + DOC + "    @property\n    def css(self):\n        pass\n",
        "crawler.py:9: text.css has no type",
    ),
]:
    assert told(code) == expected, (code, told(code))
print("as expected")
