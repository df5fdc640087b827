"""The manner in which a construction is trained: which tasks there are, and how they make a step together."""

from dataclasses import asdict, dataclass, replace
from typing import Any, Dict, Mapping, Optional

from tests.differential.constructions.axes import ONLY_TF1, Construction

STEPS, RESUMED_AT = 4, 2
BATCH = 8  # examples of a step, however many workers, towers and accumulated batches share them
SAME = 2  # examples of a copy where all copies have the same ones
WIDTH = 6
CLIP_NORM = 0.3
MANNERS: Dict[str, Mapping[Any, int]] = {
    "runtime": {"tf1": 1, "tf2": 1},
    "sync": {"overlapped": 38, "plain": 9, "clipped": 11, "backup": 5, "async": 11, "in-graph": 15, "stock": 8},
    "ps": {1: 60, 2: 30, 3: 10},
    "workers": {1: 58, 2: 42},
    "towers": {1: 50, 2: 50},
    "accumulate": {1: 65, 2: 35},
    "wire": {"float32": 85, "bfloat16": 15},
    "rewritten": {False: 85, True: 15},
    "resumed": {False: 93, True: 7},
}


@dataclass(frozen=True)
class Manner:
    """One manner; ``rewritten``: TensorFlow rewrites graphs first; ``resumed``: a second run goes on from the first."""

    runtime: str = "tf1"
    sync: str = "overlapped"
    ps: int = 1
    workers: int = 1
    towers: int = 1
    accumulate: int = 1
    wire: str = "float32"
    rewritten: bool = False
    resumed: bool = False

    def __str__(self) -> str:
        sizes = f"{self.ps} ps, {self.workers} workers of {self.towers} towers times {self.accumulate}"
        more = " rewritten" * self.rewritten + " resumed" * self.resumed
        return f"{self.runtime} {self.sync} {sizes} {self.wire}{more}"

    @property
    def copies(self) -> int:
        """How many copies of the model one graph has."""
        members = self.workers if self.sync == "in-graph" else 1
        return members * self.towers * self.accumulate

    @property
    def parts(self) -> int:
        """Into how many parts the batch of a step is cut."""
        return self.workers * self.towers * self.accumulate


def legal(manner: Manner, of: Construction) -> Manner:
    """The same manner, without what ``hosts.yaml`` refuses or what has not the values of one process by design."""
    if manner.sync == "backup" and (of.update != "none" or of.wrapper == "decayed"):
        manner = replace(manner, sync="plain")  # the chief's own steps, of which it may miss one there
    if manner.sync == "backup":
        manner = replace(manner, workers=2)
    if manner.sync == "stock" and not of.must_be_refused:
        manner = replace(
            manner, sync="plain"
        )  # its tokens are preloaded, so it chooses by chance which gradients count
    if manner.sync in ("async", "stock"):  # two workers make steps in no settled order
        manner = replace(manner, workers=1)
    if manner.sync == "stock":
        manner = replace(manner, accumulate=1, wire="float32")
    if manner.sync in ("backup", "stock"):
        manner = replace(manner, resumed=False)
    return replace(manner, runtime="tf1") if _only_tf1(of) else manner


def _only_tf1(of: Construction) -> bool:
    return any(getattr(of, axis) in values for axis, values in ONLY_TF1.items())


@dataclass(frozen=True)
class Drawn:
    """What a seed draws: a construction, and the manner in which it is trained."""

    number: int
    construction: Construction
    way: Manner

    def __str__(self) -> str:
        return f"seed {self.number}: {self.construction}: {self.way}"

    @property
    def same(self) -> bool:
        """Whether all copies have the same examples; see ``tests.differential.ways``."""
        return self.construction.same or self.way.sync == "backup"

    @property
    def per_tower(self) -> int:
        """Examples of a copy."""
        return SAME if self.same else BATCH // self.way.parts

    def args(self) -> Dict[str, Any]:
        """What the author's functions are told."""
        same, fresh = SAME if self.same else 0, self.way.sync != "backup"
        legs = [RESUMED_AT, STEPS] if self.way.resumed else [STEPS]
        return {"width": WIDTH, "rows": 1, "steps": STEPS, "same": same, "fresh": fresh, "legs": legs}

    def train(self, steps: int) -> Dict[str, Any]:
        """The ``train`` section of a hosts file."""
        way = self.way
        settings: Dict[str, Any] = {"steps": steps, "batch_size": self.per_tower}
        settings.update(towers=way.towers, accumulate=way.accumulate, wire=way.wire, **self.construction.settings)
        own: Dict[str, Dict[str, Any]] = {
            "async": {"mode": "async"},
            "backup": {"backup_workers": 1},
            "clipped": {"clip_norm": CLIP_NORM},
            "in-graph": {"replication": "in-graph"},
        }
        settings.update(own.get(way.sync, {"sync": way.sync}))
        return settings

    @property
    def clip_norm(self) -> Optional[float]:
        """The norm to which gradients are clipped, or None."""
        return CLIP_NORM if self.way.sync == "clipped" else None

    def reference(self) -> Dict[str, Any]:
        """What a plain program needs to know to train the same."""
        batch = SAME if self.construction.same else SAME * self.way.parts if self.same else BATCH
        return {
            "author": self.construction.as_json(),
            "args": self.args(),
            "batch": batch,
            "clip_norm": self.clip_norm,
            "rounded": self.way.wire != "float32",
        }

    def request(self) -> Dict[str, Any]:
        """This very thing for a process that is asked; ``from_request`` makes it again."""
        return {"number": self.number, "construction": asdict(self.construction), "way": asdict(self.way)}


def from_request(values: Mapping[str, Any]) -> Drawn:
    """What ``request`` wrote."""
    return Drawn(values["number"], Construction(**values["construction"]), Manner(**values["way"]))
