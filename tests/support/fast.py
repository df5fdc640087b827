"""Which tests take milliseconds: those whose modules reach no TensorFlow, no process and no host by what they import.

``make test-fast`` runs them. There is no list to keep: a test module is fast while nothing that it imports is slow.
Of the tests' own modules every slow import counts, of the product's only TensorFlow.
"""

import ast
from functools import lru_cache
from pathlib import Path
from typing import FrozenSet, Iterator, Optional, Sequence, Set

from tests.support import ROOT

OURS = ("cluster", "launch", "jobs", "tests")
STARTS_SOMETHING = (
    "subprocess",
    "multiprocessing",
    "tests.support.hosts.FakeHosts",
    "tests.support.hosts.host",
    "tests.support.launch.machine.living_under",  # who looks for processes that were left has started some
)


def is_fast(path: Path) -> bool:
    """Return whether the module of a test file reaches nothing slow."""
    return not any(_is_slow(module) for module in _reached(_module(path)))


def _reached(first: str) -> Set[str]:
    """Return the modules of ours that are loaded with ``first``, itself among them."""
    found, left = {first}, [first]
    while left:
        further = {name for name in _imports(left.pop()) if name.split(".")[0] in OURS and _file(name)} - found
        found |= further
        left += further
    return found


def _is_slow(module: str) -> bool:
    starts = STARTS_SOMETHING if module.startswith("tests.") else ()
    return any(name.split(".")[0] == "tensorflow" or name in starts for name in _imports(module))


@lru_cache(maxsize=None)
def _imports(module: str) -> FrozenSet[str]:
    """Return the dotted names that a module imports when it is loaded; for ``from a import b`` a and a.b."""
    file = _file(module)
    return frozenset(_imported(ast.parse(file.read_text(), str(file)).body)) if file else frozenset()


def _imported(body: Sequence[ast.stmt]) -> Iterator[str]:
    for node in body:
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{each.name}" for each in node.names)
        elif isinstance(node, ast.If) and "TYPE_CHECKING" not in ast.dump(node.test):
            yield from _imported([*node.body, *node.orelse])
        elif isinstance(node, ast.Try):
            yield from _imported(node.body)


def _module(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts)


def _file(module: str) -> Optional[Path]:
    """Return the file of a module or package of ours; None of anything else."""
    path = ROOT.joinpath(*module.split("."))
    return next((file for file in (path.with_suffix(".py"), path / "__init__.py") if file.is_file()), None)
