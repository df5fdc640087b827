"""Modules as they are written: their names, and what they import."""

import ast
import re
from pathlib import Path
from typing import Iterator, NamedTuple


class Import(NamedTuple):
    """A name that a module imports."""

    line: int
    module: str  # dotted; for ``from a import b`` it is ``a.b``


class Source(NamedTuple):
    """A module's text as a tree."""

    path: str  # from the root, with slashes: "launch/cli.py"
    tree: ast.Module

    @property
    def module(self) -> str:
        """``launch.cli``; a package's ``__init__.py`` is the package."""
        return re.sub(r"(/__init__)?\.py$", "", self.path).replace("/", ".")

    @property
    def package(self) -> str:
        """What a relative import with one dot is relative to."""
        return str(Path(self.path).parent).replace("/", ".")

    def imports(self) -> Iterator[Import]:
        """Yield every import, also those inside functions."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                yield from (Import(node.lineno, name.name) for name in node.names)
            elif isinstance(node, ast.ImportFrom):
                above = self.package.split(".")
                origin = above[: len(above) - node.level + 1] if node.level else []
                prefix = ".".join([*origin, *filter(None, [node.module])])
                yield from (Import(node.lineno, f"{prefix}.{name.name}") for name in node.names)
