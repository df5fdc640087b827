"""Measures the size of the product's tree: python -m tests.size.

The figures are signs, not the aim: a stranger finds, changes and removes a feature quickly. They may only fall.
"""

import ast
from collections import Counter
from pathlib import Path
from typing import Dict, Iterator, List, NamedTuple, Set

from tests.support import ROOT

SMALL, LONG, MOST_ARGUMENTS = 30, 300, 6
PARTS = ("after", "notice", "limits", "containers")  # features that are counted by the files that name them


class Module(NamedTuple):
    """A module of the product; ``path`` is from the root."""

    path: Path
    lines: int
    tree: ast.Module

    @property
    def name(self) -> str:
        """Return the dotted name."""
        return ".".join(self.path.with_suffix("").parts)

    @property
    def is_listing(self) -> bool:
        """Return whether it only describes its package, or is its entry."""
        return self.path.stem.startswith("__")


def modules() -> List[Module]:
    """Return every module of the product."""
    paths = [path for room in ("cluster", "launch", "jobs") for path in sorted((ROOT / room).rglob("*.py"))]
    texts = {path: path.read_text() for path in paths}
    return [Module(path.relative_to(ROOT), text.count("\n"), ast.parse(text)) for path, text in texts.items()]


def figures(found: List[Module]) -> Dict[str, int]:
    """Return the figures of some modules, by what they count."""
    named = [each for each in found if not each.is_listing]
    nodes = [node for each in found for node in ast.walk(each.tree) if type(node).__name__ != "Index"]  # of 3.7
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
    return not is_own and part in {text for node in ast.walk(module.tree) for text in _texts(node)}


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
    names = {each.name for each in named}
    importers: Dict[str, Set[str]] = {}
    for each in found:
        for node in ast.walk(each.tree):
            if isinstance(node, ast.ImportFrom) and node.module:
                for alias in node.names:
                    whole = f"{node.module}.{alias.name}"
                    importers.setdefault(whole if whole in names else node.module, set()).add(each.name)
            elif isinstance(node, ast.Import):
                for alias in node.names:
                    importers.setdefault(alias.name, set()).add(each.name)
    return sum(len(importers.get(name, ())) == 1 for name in names)


def _twice(names: Iterator[str]) -> int:
    return sum(count > 1 for count in Counter(names).values())


if __name__ == "__main__":
    for figure, count in figures(modules()).items():
        print(f"{count:8,d}  {figure}")
