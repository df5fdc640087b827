"""The process of one mutant: it runs history after history until a promise is broken.

It reads a JSON line: ``sources``, texts by names of modules; and ``lines``, whether each history is to have the lines
that it reached, by path. Then each line is a seed, and faults in the place of its own or null. It answers with a line.
"""

import importlib.abc
import importlib.util
import json
import resource
import sys
import time
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any, Dict, Mapping, Optional, Set

from tests.simulation.mutants.reached import MARKS, marked

MOST_BYTES = 3 << 30
_ROOT = Path(__file__).resolve().parents[3]
_MARKED = (
    "launch.agent.service.",
    "launch.agent.protocol.",
    "launch.agent.supervision.",
    "launch.run.",
    "launch.teardown",
)


class Replacing(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Import modules with other texts than those of their files; ``marks``: note the lines that they reach."""

    def __init__(self, sources: Mapping[str, str], marks: bool):
        self._sources, self._marks = sources, marks
        self.lines: Dict[str, Set[int]] = {}

    def find_spec(self, name: str, path: Any, target: Any = None) -> Optional[ModuleSpec]:
        if name in self._sources or (self._marks and name.startswith(_MARKED)):
            return importlib.util.spec_from_loader(name, self)
        return None

    def get_source(self, name: str) -> str:
        """Return the text of a module."""
        text = self._sources.get(name)
        return (_ROOT / (name.replace(".", "/") + ".py")).read_text() if text is None else text

    def exec_module(self, module: Any) -> None:
        path, text = module.__name__.replace(".", "/") + ".py", self.get_source(module.__name__)
        if self._marks:
            module.__dict__[MARKS] = self.lines[path] = set()
            code = marked(text, str(_ROOT / path))
        else:
            code = compile(text, str(_ROOT / path), "exec")
        exec(code, module.__dict__)


def main() -> None:
    """Run the histories that the standard input asks for."""
    asked = json.loads(sys.stdin.readline())
    resource.setrlimit(resource.RLIMIT_AS, (MOST_BYTES, MOST_BYTES))
    replacing = Replacing(asked["sources"], asked["lines"])
    sys.meta_path.insert(0, replacing)
    try:
        from tests.simulation import faults, verdict, world
    except Exception as error:
        _write({"kind": "stillborn", "why": repr(error)})
        return
    for line in sys.stdin:
        seed, given = json.loads(line)
        for lines in replacing.lines.values():
            lines.clear()
        began, history = time.process_time(), world.World(seed, given and [faults.Fault(*each) for each in given])
        why = verdict.verdict(history)
        found = {"kind": None if why is None else verdict.promise(why), "why": why, "digest": history.digest}
        reached = {path: sorted(lines) for path, lines in replacing.lines.items()}
        _write({"seed": seed, **found, "lines": reached, "took_s": time.process_time() - began})


def _write(values: Mapping[str, Any]) -> None:
    print(json.dumps(values), flush=True)


if __name__ == "__main__":
    main()
