"""Which tests take milliseconds: those whose modules reach no TensorFlow, no process and no host by what they import.

``make test-fast`` runs them. There is no list to keep: a test module is fast while nothing that it imports is slow.
Of the tests' own modules every slow import counts, of the product's only TensorFlow. A test that is slow by what it
tests has the mark ``not_fast``; one without it fails as soon as it starts a process or loads TensorFlow (``guarded``).
"""

import ast
import os
import subprocess
import sys
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any, FrozenSet, Iterator, NoReturn, Optional, Sequence, Set

import pytest

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


class _Forbidden:
    """A finder of modules that fails the test which imports TensorFlow."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        if name == "tensorflow":
            _refuse()


def _refuse(*_: Any, **__: Any) -> NoReturn:
    pytest.fail("a fast test: expected no process and no TensorFlow, found one; mark it with pytest.mark.not_fast")


@contextmanager
def guarded() -> Iterator[None]:
    """Fail each test that starts a process or loads TensorFlow in the block."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "meta_path", [_Forbidden(), *sys.meta_path])
        patch.setattr(subprocess.Popen, "__init__", _refuse)
        for name in ("fork", "forkpty", "system"):
            patch.setattr(os, name, _refuse)
        yield


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
        elif isinstance(node, (ast.Try, ast.With)):
            yield from _imported(node.body)


def _module(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts)


def _file(module: str) -> Optional[Path]:
    """Return the file of a module or package of ours; None of anything else."""
    path = ROOT.joinpath(*module.split("."))
    return next((file for file in (path.with_suffix(".py"), path / "__init__.py") if file.is_file()), None)
