"""The ways in which a model is trained here, and which of them are tried."""

import itertools
import zlib
from dataclasses import asdict, dataclass
from typing import Any, Dict, List, Optional, Sequence, Set, Tuple

from tests.differential.authors import Author

Pair = Tuple[Any, ...]

STEPS = 5
GLOBAL_BATCH = 8  # examples of a step, however many workers and towers share them
SAME = 4  # examples of a tower where all towers have the same ones
CLIP_NORM = 0.3
AXES: Dict[str, Tuple[Any, ...]] = {
    "runtime": ("tf1", "tf2"),
    "sync": ("overlapped", "plain", "clipped", "backup", "async"),
    "ps": (1, 2, 3),
    "size": ("small", "large"),
    "towers": (1, 2),
    "wire": ("float32", "bfloat16"),
}
WIDTHS = {"small": 6, "large": 300}  # a square of the large one is cut into slices
ROWS = {"small": 11, "large": 3000}


@dataclass(frozen=True)
class Way:
    """One way; ``size`` says whether the variables are so large that they are cut."""

    runtime: str
    sync: str
    ps: int
    size: str
    towers: int
    wire: str

    def __str__(self) -> str:
        towers = f"{self.towers} tower{'s' * (self.towers > 1)}"
        return f"{self.runtime} {self.sync} {self.ps} ps {self.size} {towers} {self.wire}"

    def values(self) -> Dict[str, Any]:
        """The way as JSON has it."""
        return asdict(self)


@dataclass(frozen=True)
class Case:
    """A model and a way to train it."""

    author: Author
    way: Way

    def __str__(self) -> str:
        return f"{self.author.title}: {self.way}"

    @property
    def workers(self) -> int:
        """How many workers train."""
        return 1 if self.author.alone or self.way.sync == "async" else 2

    @property
    def same(self) -> bool:
        """Whether all towers have the same examples.

        With a backup worker nobody knows whose gradients are taken, nor which of its batches a late worker has come to:
        there all steps have the same examples, too.
        """
        return self.author.same or self.way.sync == "backup"

    @property
    def rewritten(self) -> bool:
        """Whether TensorFlow rewrites the graph, as it does where there are GPUs: in every second case."""
        return zlib.crc32(f"{self.author.name} {self.way}".encode()) % 2 == 0

    @property
    def per_tower(self) -> int:
        """Examples in a tower's batch."""
        return SAME if self.same else GLOBAL_BATCH // (self.workers * self.way.towers)

    def args(self) -> Dict[str, Any]:
        """What the author's functions are told."""
        size = self.way.size
        same, fresh = SAME if self.same else 0, self.way.sync != "backup"
        return {"width": WIDTHS[size], "rows": ROWS[size], "steps": STEPS, "same": same, "fresh": fresh}

    def train(self) -> Dict[str, Any]:
        """The ``train`` section of a hosts file."""
        sync = self.way.sync
        settings: Dict[str, Any] = {"mode": "async" if sync == "async" else "sync", "steps": STEPS}
        settings.update(batch_size=self.per_tower, towers=self.way.towers, wire=self.way.wire, **self.author.settings)
        if sync in ("overlapped", "plain"):
            settings["sync"] = sync
        if sync == "backup":
            settings["backup_workers"] = 1
        if self.clip_norm is not None:
            settings["clip_norm"] = self.clip_norm
        return settings

    @property
    def clip_norm(self) -> Optional[float]:
        """The norm to which gradients are clipped, or None."""
        return CLIP_NORM if self.way.sync == "clipped" else None

    def reference(self) -> Dict[str, Any]:
        """What a plain program needs to know to train the same; alike for many ways.

        Where all towers have the same examples, a step of one process has them as often as there are towers: what a
        gradient is made of may depend on how many examples share the mean. A model that depends on what is in its batch
        gets them once, as a tower does.
        """
        batch = SAME if self.author.same else SAME * self.way.towers if self.same else GLOBAL_BATCH
        return {
            "author": self.author.name,
            "args": self.args(),
            "batch": batch,
            "clip_norm": self.clip_norm,
        }

    def possible(self) -> bool:
        """Whether the model can be tried in this way at all."""
        unable = self.author.alone and (self.way.sync == "backup" or self.way.towers > 1)
        return not unable and self.way.runtime in self.author.runtimes


def product(authors: Sequence[Author], runtimes: Sequence[str]) -> List[Case]:
    """Every model in every way."""
    ways = [Way(*values) for values in itertools.product(*AXES.values())]
    cases = [Case(author, way) for author in authors for way in ways if way.runtime in runtimes]
    return [case for case in cases if case.possible()]


def sample(cases: Sequence[Case]) -> List[Case]:
    """Every model in one of its cases, so that all pairs of values of a way's axes occur, again and again."""
    missing: Set[Pair] = set()
    chosen = []
    for mine in _by_author(cases):
        missing = missing or _all_pairs(cases)
        best = max(mine, key=lambda case: len(_pairs(case.way) & missing))
        missing -= _pairs(best.way)
        chosen.append(best)
    return chosen


def pairwise(cases: Sequence[Case]) -> List[Case]:
    """Cases in which every model meets every value of every axis, and all pairs of values occur."""
    missing = _all_pairs(cases)
    chosen = []
    for mine in _by_author(cases):
        unmet = {value for case in mine for value in case.way.values().items()}
        while unmet:
            best = max(mine, key=lambda case: (len(_met(case) & unmet), len(_pairs(case.way) & missing)))
            unmet -= _met(best)
            missing -= _pairs(best.way)
            chosen.append(best)
    return chosen


def _by_author(cases: Sequence[Case]) -> List[List[Case]]:
    """The cases of each author, beginning elsewhere for each, so that equally good ones differ between authors."""
    found: Dict[str, List[Case]] = {}
    for case in cases:
        found.setdefault(case.author.name, []).append(case)
    starts = {name: zlib.crc32(name.encode()) % len(mine) for name, mine in found.items()}
    return [mine[starts[name] :] + mine[: starts[name]] for name, mine in found.items()]


def _all_pairs(cases: Sequence[Case]) -> Set[Pair]:
    return {pair for way in {case.way for case in cases} for pair in _pairs(way)}


def _pairs(way: Way) -> Set[Pair]:
    return set(itertools.combinations(way.values().items(), 2))


def _met(case: Case) -> Set[Any]:
    return set(case.way.values().items())
