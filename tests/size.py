"""Measures the size of the product's tree: python -m tests.size.

The figures are signs, not the aim: a stranger finds, changes and removes a feature quickly. They may only fall.
"""

import ast
from collections import Counter
from pathlib import PurePath
from typing import Dict, Iterator, List, NamedTuple, Set

from tests.support import ROOT
from tests.support.sources import Source

SMALL, LONG, MOST_ARGUMENTS = 30, 300, 6
PARTS = ("after", "notice", "limits", "containers")  # features that are counted by the files that name them


class Module(NamedTuple):
    """A module of the product, and how many lines it has."""

    source: Source
    lines: int

    @property
    def path(self) -> PurePath:
        """Return the path from the root."""
        return PurePath(self.source.path)

    @property
    def is_listing(self) -> bool:
        """Return whether it only describes its package, or is its entry."""
        return self.path.stem.startswith("__")


def modules() -> List[Module]:
    """Return every module of the product."""
    paths = [path for room in ("cluster", "launch", "jobs") for path in sorted((ROOT / room).rglob("*.py"))]
    return [module(path.relative_to(ROOT).as_posix(), path.read_text()) for path in paths]


def module(path: str, text: str) -> Module:
    """Return a module of its text."""
    return Module(Source(path, ast.parse(text)), text.count("\n"))


def figures(found: List[Module]) -> Dict[str, int]:
    """Return the figures of some modules, by what they count."""
    named = [each for each in found if not each.is_listing]
    nodes = [node for each in found for node in ast.walk(each.source.tree) if type(node).__name__ != "Index"]  # of 3.7
    calls = [len(node.args) for node in nodes if isinstance(node, ast.Call)]
    return {
        "AST nodes": len(nodes),
        "files": len(found),
        f"modules of {SMALL} lines or fewer": sum(each.lines <= SMALL for each in named),
        "modules with one importer": _with_one_importer(named, found),
        "class names used twice": _twice(node.name for node in nodes if isinstance(node, ast.ClassDef)),
        "file names used twice": _twice(each.path.name for each in named),
        f"calls with more than {MOST_ARGUMENTS} arguments by position": sum(n > MOST_ARGUMENTS for n in calls),
        f"files of more than {LONG} lines": sum(each.lines > LONG for each in found),
        **{f"files outside it that name {part}": sum(names(each, part) for each in found) for part in PARTS},
    }


def names(module: Module, part: str) -> bool:
    """Return whether a module that is not of a part uses its name: to import it, as a key, a field or an argument."""
    is_own = any(piece == part or piece.startswith(f"{part}_") for piece in module.path.with_suffix("").parts)
    return not is_own and part in {text for node in ast.walk(module.source.tree) for text in _texts(node)}


def _texts(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.ImportFrom):
        yield from (node.module or "").split(".")
    for field in ("id", "attr", "arg", "name"):
        value = getattr(node, field, None)
        if isinstance(value, str):
            yield value
    if type(node).__name__ in ("Constant", "Str"):
        yield str(ast.literal_eval(node))


def _with_one_importer(named: List[Module], found: List[Module]) -> int:
    modules = {each.source.module for each in named}
    importers: Dict[str, Set[str]] = {}
    for each in found:
        for imported in each.source.imports():
            whole, package = imported.module, imported.module.rpartition(".")[0]
            importers.setdefault(whole if whole in modules else package, set()).add(each.source.module)
    return sum(len(importers.get(module, ())) == 1 for module in modules)


def _twice(found: Iterator[str]) -> int:
    return sum(count > 1 for count in Counter(found).values())


if __name__ == "__main__":
    for figure, count in figures(modules()).items():
        print(f"{count:8,d}  {figure}")
