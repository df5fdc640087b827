"""Which lines and branches of the functions of agents and launchers histories run, by Python's own tracing."""

import sys
from contextlib import contextmanager
from dis import findlinestarts
from inspect import CO_OPTIMIZED
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, Dict, Iterator, List, Set, Tuple

from tests.simulation.branches import ways

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = {
    "launch/agent/service": ("lead", "publication", "member", "member_links", "agent", "recovery", "keeping"),
    "launch/agent/protocol": ("gate", "links", "silence"),
    "launch/agent/supervision": ("*",),
    "launch/run": ("attached", "follower", "lifecycle", "outliving", "resume", "start"),
    "launch": ("teardown",),
    "launch/agent/checkpoints": ("resume",),
}


class Lines:
    """The lines that have run, by file: each with the line of its function that ran before it, 0 for none."""

    def __init__(self) -> None:
        self.run: Dict[str, Set[Tuple[int, int]]] = {}

    def add(self, more: "Lines") -> None:
        """Take in what others have run."""
        for file, steps in more.run.items():
            self.run.setdefault(file, set()).update(steps)

    @contextmanager
    def traced(self) -> Iterator[None]:
        """Note what runs inside."""
        sys.settrace(self._begin)
        try:
            yield
        finally:
            sys.settrace(None)

    def _begin(self, frame: FrameType, event: str, value: Any) -> Any:
        """A function begins, or goes on: trace it if it is in one of the modules."""
        seen = _TRACED.get(frame.f_code.co_filename)
        if seen is None:
            return None
        steps, before = self.run.setdefault(seen, set()), 0

        def line(frame: FrameType, event: str, value: Any) -> Any:
            nonlocal before
            if event == "line":
                steps.add((before, frame.f_lineno))
                before = frame.f_lineno
            return line

        return line


def files() -> List[Path]:
    """The modules that are looked at."""
    found = [path for folder, names in FOLDERS.items() for name in names for path in (ROOT / folder).glob(f"{name}.py")]
    return sorted(path for path in found if path.name != "__init__.py")


_TRACED = {str(path): path.relative_to(ROOT).as_posix() for path in files()}


def report(lines: Lines) -> Iterator[str]:
    """For each file the shares of its functions' lines and branches that have run, and what never did; then of all."""
    whole = missed = branches = untaken = 0
    for file in _TRACED.values():
        text, steps = (ROOT / file).read_text(), lines.run.get(file, set())
        own = _lines(compile(text, file, "exec"))
        never = sorted(own - {line for _, line in steps})
        of = ways(text, steps)
        whole, missed = whole + len(own), missed + len(never)
        branches, untaken = branches + of.number, untaken + of.never
        notes = [f"never {_ranges(never)}"] * bool(never) + of.words
        shares = f"{_share(len(own), len(never))} {_share(of.number, of.never)}"
        yield f"{shares} {file}{': ' + '; '.join(notes) if notes else ''}"
    yield f"{_share(branches, untaken)} of {branches} branches"
    yield f"{_share(whole, missed)} of {whole} lines"


def _share(whole: int, missed: int) -> str:
    return f"{100 * (whole - missed) / max(whole, 1):5.1f} %"


def _lines(code: CodeType) -> Set[int]:
    """The lines of functions: those of modules and classes run once, with their import."""
    found = {number for each in code.co_consts if isinstance(each, CodeType) for number in _lines(each)}
    if code.co_flags & CO_OPTIMIZED and not code.co_name.startswith("<"):
        found |= {number for _, number in findlinestarts(code) if number is not None} - {code.co_firstlineno}
    return found


def _ranges(numbers: List[int]) -> str:
    """1-3, 7: numbers that follow each other as one."""
    found: List[List[int]] = []
    for number in numbers:
        if found and found[-1][1] == number - 1:
            found[-1][1] = number
        else:
            found.append([number, number])
    return ", ".join(f"{first}-{last}" if first < last else str(first) for first, last in found)
