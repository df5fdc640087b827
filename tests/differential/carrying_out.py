"""Carries out cases in processes of their own: first what plain TensorFlow makes of them, then this project."""

import hashlib
import json
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import Queue
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Sequence, Tuple

from tests.differential.asking import ROOT, Asked
from tests.differential.verdict import DIFFERENT, Verdict
from tests.differential.ways import Case

REFERENCES, RUNS = 200, 25  # that a process makes; a run leaves its servers behind
TIMEOUT_S = 60.0  # on a machine with nothing else to do
_MOST_PATIENT = 5.0  # times as long, on a machine that others use
RUNTIME = "tf1" if sys.version_info < (3, 8) else "tf2"  # of this very process
PYTHONS = {"tf1": ROOT / ".venv/bin/python", "tf2": ROOT / ".venv-tf2/bin/python", RUNTIME: Path(sys.executable)}
Digested = Callable[["Result"], None]


class Result(NamedTuple):
    """What came of a case."""

    case: Case
    verdict: Verdict


class Bench:
    """Processes of each runtime, ``jobs`` of them at a time, with their logs in ``folder``.

    What plain TensorFlow made of a model is kept there, too, for as long as nothing of this package changes.
    """

    def __init__(self, folder: Path, jobs: int = 1, timeout_s: float = TIMEOUT_S):
        self.folder, self.jobs, self.timeout_s = folder, jobs, timeout_s
        self._references = folder / f"references-{_edition()}"
        self._references.mkdir(parents=True, exist_ok=True)

    def carry_out(self, cases: Sequence[Case]) -> Iterator[Result]:
        """The results, as they come."""
        wanted = {self._path(case): case for case in cases if not Path(self._path(case)).exists()}
        made = {self._path(case): "" for case in cases}
        made.update(self._all("tests.differential.reference", REFERENCES, list(wanted.items()), self._reference))
        good = [(case, case) for case in cases if not made[self._path(case)]]
        for case in cases:
            problem = made[self._path(case)]
            if problem:
                yield Result(case, Verdict(DIFFERENT, f"plain TensorFlow does not train it: {problem}"))
        for case, verdict in self._all("tests.differential.ours", RUNS, good, self._run):
            yield Result(case, verdict)

    def _all(
        self, module: str, lives: int, items: Sequence[Tuple[Any, Case]], do: Callable[[Asked, Case], Any]
    ) -> Iterator[Tuple[Any, Any]]:
        """Does something with every case, those of a runtime in processes of that; the results by the items' keys."""
        benches: Queue[Dict[str, Asked]] = Queue()
        for index in range(self.jobs):
            log = self.folder / f"{module}.{index}.log"
            benches.put({runtime: Asked(python, module, log, lives) for runtime, python in PYTHONS.items()})

        def one(item: Tuple[Any, Case]) -> Tuple[Any, Any]:
            bench = benches.get()
            try:
                return item[0], do(bench[item[1].way.runtime], item[1])
            finally:
                benches.put(bench)

        with ThreadPoolExecutor(self.jobs) as pool:
            yield from pool.map(one, sorted(items, key=lambda item: item[1].way.runtime))
        while not benches.empty():
            for asked in benches.get().values():
                asked.end()

    def _patience_s(self) -> float:
        """How long a case may take now, by the load of the machine."""
        busy = os.getloadavg()[0] / (os.cpu_count() or 1)
        return self.timeout_s * min(_MOST_PATIENT, max(1.0, busy))

    def _path(self, case: Case) -> str:
        words = json.dumps([case.way.runtime, case.reference()], sort_keys=True)
        return str(self._references / f"{hashlib.sha1(words.encode()).hexdigest()}.npz")

    def _reference(self, asked: Asked, case: Case) -> str:
        """What is wrong with the reference of a case, or nothing."""
        answer = asked.ask({**case.reference(), "path": self._path(case)}, self._patience_s())
        if "moved" not in answer:
            return str(answer)
        return "" if answer["moved"] else "nothing moves, so nothing is compared"

    def _run(self, asked: Asked, case: Case) -> Verdict:
        request = {
            "author": case.author.name,
            "args": case.args(),
            "train": case.train(),
            "ps": case.way.ps,
            "workers": case.workers,
            "rewritten": case.rewritten,
            "path": self._path(case),
        }
        answer = asked.ask(request, self._patience_s())
        if "kind" in answer:
            return Verdict(answer["kind"], answer["text"])
        ((what, value),) = answer.items()
        return Verdict(DIFFERENT, f"{what}: {value}")


def _edition() -> str:
    """What this package is like, in a word."""
    files = sorted(Path(__file__).parent.rglob("*.py"))
    return hashlib.sha1(b"".join(path.read_bytes() for path in files)).hexdigest()[:12]


def ready(runtimes: Sequence[str]) -> List[str]:
    """The runtimes among them whose environment is built."""
    return [runtime for runtime in runtimes if PYTHONS[runtime].is_file()]
