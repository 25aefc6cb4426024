"""Reference of the SDK for Python, made of the signatures and docstrings of crawler.py, which it does not import.

As a program it prints the part of the book that is about names. A name that an author uses stands in `__all__`; one
without a docstring, type or example ends the program with its place.
"""

import ast
import sys
from pathlib import Path
from textwrap import dedent
from types import SimpleNamespace

SDK = "crawler.py"
WIDTH = 110
# Objects of other classes are handed to authors, so their constructors are not shown.
MADE_BY_AUTHORS = ("Plugin", "links", "rows")


def wrong(node, why):
    sys.exit(f"{SDK}:{node.lineno}: {why}")


def names(tree):
    """Public names of the module in the order of `__all__`, each with its title, signatures and docstring."""
    by_name = {}
    for node in tree.body:
        if isinstance(node, (ast.ClassDef, ast.FunctionDef)) and not node.name.startswith("_"):
            by_name[node.name] = node
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            listed, order = node, ast.literal_eval(node.value)
    for name, node in by_name.items():
        if name not in order:
            wrong(node, f"{name} is not in __all__: add it, or begin its name with _")
    for name in order:
        if name not in by_name:
            wrong(listed, f"__all__ has {name}, which is not there")
        node = by_name[name]
        if isinstance(node, ast.FunctionDef):
            yield described(name, node, [signature(name, node)])
            continue
        yield described(name, node, [constructor(node)] if name in MADE_BY_AUTHORS else [])
        yield from members(node)


def constructor(node):
    made = next(f for f in node.body if isinstance(f, ast.FunctionDef) and f.name == "__init__")
    return signature(node.name, made, is_method=True, has_result=False)


def members(owner):
    """Public methods and properties of a class."""
    overloads = {}
    for node in owner.body:
        if not isinstance(node, ast.FunctionDef) or node.name.startswith("_"):
            continue
        title = f"{owner.name}.{node.name}"
        marks = [ast.unparse(mark) for mark in node.decorator_list]
        if "property" in marks:
            if node.returns is None:
                wrong(node, f"{title} has no type")
            yield described(title, node, [f"{title}: {ast.unparse(node.returns)}"])
        elif "overload" in marks:
            overloads.setdefault(title, []).append(signature(title, node, is_method=True))
        else:
            is_method = "staticmethod" not in marks
            shown = overloads.get(title) or [signature(title, node, is_method)]
            yield described(title, node, shown)


def signature(title, node, is_method=False, has_result=True):
    """A signature as it is written in code, with a line for each parameter if it is long."""
    own = node.args.args[0] if is_method else None
    all_args = node.args.posonlyargs + node.args.args + node.args.kwonlyargs
    for arg in all_args:
        if arg is not own and arg.annotation is None:
            wrong(node, f"parameter {arg.arg} of {title} has no type")
    if has_result and node.returns is None:
        wrong(node, f"{title} says no type of its result")
    args = node.args
    with_default = [None] * (len(args.args) - len(args.defaults)) + args.defaults
    parts = [part(arg, default) for arg, default in zip(args.args, with_default) if arg is not own]
    if args.kwonlyargs:
        parts += ["*"] + [part(arg, default) for arg, default in zip(args.kwonlyargs, args.kw_defaults)]
    result = f" -> {ast.unparse(node.returns)}" if has_result else ""
    line = f"{title}({', '.join(parts)}){result}"
    if len(line) <= WIDTH:
        return line
    return "\n".join([f"{title}(", *(f"    {part}," for part in parts), f"){result}"])


def part(arg, default):
    shown = "" if default is None else f" = {ast.unparse(default)}"
    return f"{arg.arg}: {ast.unparse(arg.annotation)}{shown}"


def described(title, node, signatures):
    doc = ast.get_docstring(node)
    if not doc:
        wrong(node, f"{title} has no docstring")
    if not example(doc):
        wrong(node, f"the docstring of {title} has no example: end it with a line `Example:` and indented code")
    return SimpleNamespace(title=title, line=node.lineno, signatures=signatures, doc=doc)


def example(doc):
    """The code below `Example:`, which ends a docstring, or an empty text."""
    return dedent(doc.partition("\nExample:\n")[2])


def markdown(doc):
    text, code = doc.partition("\nExample:\n")[0].rstrip(), example(doc)
    return f"{text}\n\n```python\n{code}\n```" if code else text


def table(described_names):
    """Table of the names, with the first sentence of each and a link to its section."""
    lines, seen = ["| name | what it does |", "|---|---|"], []
    for name in described_names:
        # What readers of Markdown make of a heading: of two that differ in case only, the second has a number.
        anchor = name.title.replace(".", "").lower()
        number = f"-{seen.count(anchor)}" if anchor in seen else ""
        seen.append(anchor)
        paragraph = " ".join(name.doc.split("\n\n")[0].split())
        sentence = paragraph.split(". ")[0].removesuffix(".") + "."
        lines.append(f"| [`{name.title}`](#{anchor}{number}) | {sentence} |")
    return "\n".join(lines)


def section(name):
    heading = "####" if "." in name.title else "###"
    signatures = "\n".join(name.signatures)
    shown = [f"```python\n{signatures}\n```"] if signatures else []
    return "\n\n".join([f"{heading} `{name.title}`", *shown, markdown(name.doc)])


def main():
    sys.stdout.reconfigure(encoding="utf-8")
    tree = ast.parse(Path(SDK).read_text(encoding="utf-8"))
    found = list(names(tree))
    print("\n\n".join([markdown(ast.get_docstring(tree)), "## Names", table(found), *map(section, found)]))


if __name__ == "__main__":
    main()
