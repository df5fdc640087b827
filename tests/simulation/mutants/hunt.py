"""The search for a history that finds a mutant: one process for each mutant, bounded in a processor's seconds."""

import hashlib
import json
import os
import subprocess
import sys
import tempfile
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from pathlib import Path
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Sequence

from tests.simulation.faults import Fault
from tests.simulation.mutants.mutant import ROOT, Mutant
from tests.simulation.mutants.reached import touches
from tests.simulation.mutants.stories import Story

LATE_S = 300.0  # for one history, however busy this machine is
AHEAD = 8  # histories of the product that are run before they are asked for


class Found(NamedTuple):
    """What came of a mutant.

    ``kind`` is the promise that breaks, or hang, exception, stillborn; None where nothing does. ``run`` histories were
    run, of which ``differ`` are not as those of the product; ``same`` ones never reach the mutant's statements.
    """

    kind: Optional[str]
    why: str
    story: Optional[Story]
    run: int
    same: int = 0
    differ: int = 0


class Histories:
    """A process that runs histories with these texts of modules."""

    def __init__(self, sources: Mapping[str, str], lines: bool = False):
        environment = {
            **os.environ, "PYTHONHASHSEED": "0", "PYTHONWARNINGS": "ignore",
            "MALLOC_ARENA_MAX": "1",  # else the threads of launchers reserve more than a history may
        }  # fmt: skip
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.simulation.mutants.histories"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=str(ROOT), env=environment,
        )  # fmt: skip
        self._send(json.dumps({"sources": sources, "lines": lines}))

    def __enter__(self) -> "Histories":
        return self

    def __exit__(self, *_: Any) -> None:
        self._process.kill()
        self._process.communicate()

    def run(self, seed: int, seconds: float, faults: Optional[Sequence[Fault]] = None) -> Dict[str, Any]:
        """Return what comes of a history, with faults in the place of its own; "late" where the seconds are over."""
        timer = threading.Timer(seconds, self._process.kill)
        timer.start()
        try:
            assert self._process.stdout is not None
            self._send(json.dumps([seed, faults]))
            line = self._process.stdout.readline()
        finally:
            timer.cancel()
        return json.loads(line.decode()) if line else {"kind": "late", "why": ""}  # type: ignore[no-any-return]

    def _send(self, line: str) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(line.encode() + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            pass  # it has said why in its last line


class Product:
    """The histories of the product as it is, each run once for all mutants, also of later calls.

    Args:
      stories: which will be asked for, in this order; the next ones are run ahead, in so many ``processes``.
    """

    def __init__(self, stories: Sequence[Story], processes: int):
        digest = hashlib.sha256()
        for path in [*sorted((ROOT / "launch").rglob("*.py")), *sorted((ROOT / "tests/simulation").rglob("*.py"))]:
            digest.update(path.read_bytes())
        self._folder = Path(tempfile.gettempdir()) / f"simulated-{digest.hexdigest()[:16]}"
        self._folder.mkdir(exist_ok=True)
        self._histories: Dict[Story, Future[Dict[str, Any]]] = {}
        self._lock, self._own = threading.Lock(), threading.local()
        self._stories, self._pool = iter(list(stories)), ThreadPoolExecutor(processes)

    def history(self, story: Story) -> Dict[str, Any]:
        """Return what comes of a story."""
        with self._lock:
            for each in [story, *islice(self._stories, 1 if story in self._histories else AHEAD)]:
                if each not in self._histories:
                    self._histories[each] = self._pool.submit(self._read, each)
        return self._histories[story].result()

    def _read(self, story: Story) -> Dict[str, Any]:
        path = self._folder / f"{story.seed}-{story.alone}-{story.soon}.json"
        if not path.exists():
            if not hasattr(self._own, "process"):
                self._own.process = Histories({}, lines=True)
            history = self._own.process.run(story.seed, LATE_S, story.faults)
            if "lines" not in history:
                raise RuntimeError(f"the product itself has no history of {story}: {history}")
            path.write_text(json.dumps(history))
        return json.loads(path.read_text())  # type: ignore[no-any-return]


class Hunt:
    """Searches, each bounded in seconds; a history that breaks a promise of the product itself finds nothing.

    Args:
      stories: the histories, in their order; but those that have found others come first.
    """

    def __init__(self, stories: Sequence[Story], seconds: float, processes: int):
        self._stories, self._seconds = list(stories), seconds
        self._product, self._lock = Product(self._stories, processes), threading.Lock()

    def find(self, mutant: Mutant) -> Found:
        """Return what comes of a mutant."""
        wanted, run, same, differ, left_s = mutant.statements(), 0, 0, 0, self._seconds
        with Histories(mutant.sources()) as histories:
            if mutant.known is not None:
                history = histories.run(mutant.known[0], LATE_S, mutant.known[1])
                return Found(history["kind"], history["why"], Story(mutant.known[0]), 1, 0, 1)
            for story in list(self._stories):
                plain = self._product.history(story)
                if plain["kind"] is not None or not touches(wanted, plain["lines"]):
                    same += 1
                    continue
                history = histories.run(story.seed, LATE_S, story.faults)
                left_s -= history.get("took_s", 0.0)
                run, kind = run + 1, history["kind"]
                differ += history.get("digest") != plain["digest"]
                if kind is not None:
                    self._prefer(story)
                    return Found(kind, history["why"], story, run, same, differ)
                if left_s <= 0:
                    break
        return Found(None, "", None, run, same, differ)

    def _prefer(self, story: Story) -> None:
        with self._lock:
            self._stories.remove(story)
            self._stories.insert(0, story)


def table(found: Mapping[str, Found]) -> List[str]:
    """Return a line for each mutant that was not found, and the sum."""
    missed = {name: each for name, each in found.items() if each.kind is None}
    lines = [
        f"  not found: {name} ({each.run} histories run, {each.differ} of them differ; {each.same} never reach it)"
        for name, each in missed.items()
    ]
    still = sum(not each.differ for each in missed.values())
    counts = f"{len(found) - len(missed)} of {len(found)} mutants found; {still} of the others change no history"
    return [*lines, counts]
