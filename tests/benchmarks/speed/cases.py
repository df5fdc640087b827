"""What is measured: cases of work, and the ways to do it that are compared on each."""

from dataclasses import dataclass, field
from typing import Any, Dict, List, Optional

from tests.benchmarks.speed import bounds, variables

WIRE_BYTES = {"float32": 4, "bfloat16": 2, "float16": 2}  # of a value


@dataclass(frozen=True)
class Case:
    """One cluster and one model.

    ``mbit``: of every network card, each way; None for no limit. ``colocated``: ps k is on worker k's host; else each
    task has a host of its own. ``kind``: of the model's variables, see ``variables.KINDS``.
    ``job``: a real model, with its ``args``, in place of variables of known sizes.
    """

    name: str
    workers: int
    ps: int
    mbit: Optional[float]
    megabytes: float
    number: int  # of variables
    kind: str = "uneven"
    colocated: bool = False
    towers: int = 1
    batch: int = 1  # examples of one tower
    job: Optional[str] = None
    args: Dict[str, Any] = field(default_factory=dict, compare=False)

    @property
    def hosts(self) -> int:
        return self.workers if self.colocated else self.workers + self.ps

    def host_of(self, role: str, index: int) -> int:
        """The place of a task's host among the hosts."""
        return index if self.colocated or role == "worker" else self.workers + index

    def allows(self, way: "Way") -> bool:
        """Whether the case can be trained in this way.

        A real model is not cut by hand, and stock has no towers. A ring has no servers, so it is compared with those
        that share the workers' hosts.
        """
        if way.ring and not self.colocated:
            return False
        return not (self.job and way.cut) and not (self.towers > 1 and way.stock)

    def bound_ms(self, wire: str = "float32") -> Optional[float]:
        """What no step can be faster than; None where the network has no limit."""
        if self.mbit is None:
            return None
        rate, model_bytes = bounds.bytes_per_s(self.mbit), self.megabytes * 1e6 * WIRE_BYTES[wire] / 4
        if self.colocated:
            return 1000 * bounds.colocated_s(model_bytes, self.workers, rate)
        return 1000 * bounds.overlapped_s(model_bytes, self.workers, self.ps, rate)


@dataclass(frozen=True)
class Way:
    """One way to train a case. ``train``: settings of this project; None is the textbook's script.

    ``cut``: into so many equal ones for each ps the script's variables are cut beforehand. ``waits``: for the gradients
    of other workers; where none does, a step is that of every worker. ``script``: what runs where ``train`` is None.
    """

    name: str
    train: Optional[Dict[str, Any]] = None
    cut: int = 0
    waits: bool = True
    script: str = "stock"
    told: str = field(default="", compare=False)  # what it is, in the report

    @property
    def stock(self) -> bool:
        return self.train is None and not self.ring

    @property
    def ring(self) -> bool:
        return self.script == "ring"

    @property
    def wire(self) -> str:
        return "float32" if self.train is None else str(self.train.get("wire", "float32"))

    def shapes(self, case: Case) -> List[List[int]]:
        """Of the variables to train."""
        if self.cut:
            return variables.even(case.megabytes, self.cut * case.ps)
        return variables.KINDS[case.kind](case.megabytes, case.number)


WAYS = {
    way.name: way
    for way in (
        Way("stock", told="SyncReplicasOptimizer, placed by replica_device_setter"),
        Way("stock-cut", cut=16, told="the same, with the variables cut into equal ones beforehand"),
        Way(
            "bare",
            cut=64,
            script="bare",
            told="the order of this project's steps and nothing else, 64 variables on each ps",
        ),
        Way("ring", script="ring", told="Horovod's ring all-reduce over Gloo, no servers"),
        Way("ours", {}, told="this project"),
        Way(
            "whole",
            {"clip_norm": 1e9},
            told="this project, pulling only when everything is pushed, as clipping needs it",
        ),
        Way("bfloat16", {"wire": "bfloat16"}, told="this project, bfloat16 on the wire"),
        Way("float16", {"wire": "float16"}, told="this project, float16 on the wire"),
        Way(
            "stock-async",
            waits=False,
            told="asynchronous: an optimizer of TensorFlow by itself, placed in the same way",
        ),
        Way("async", {"mode": "async"}, waits=False, told="asynchronous: this project"),
    )
}

_LAYERS = {"layers": 10, "side": 1000}

CASES = {
    case.name: case
    for case in (
        Case("quick", 2, 2, 100, 8, 8),
        Case("dedicated", 4, 4, 250, 40, 16),
        Case("colocated", 4, 4, 250, 40, 16, colocated=True),
        Case("two", 2, 2, 250, 40, 16),
        Case("one", 1, 1, 250, 40, 16),
        Case("two-odd", 2, 2, 250, 36.5, 47, kind="odd"),
        Case("four-odd", 4, 4, 250, 36.5, 47, kind="odd"),
        Case("eight-odd", 8, 8, 250, 36.5, 47, kind="odd"),
        *(
            Case(f"{word}-odd{name}", number, number, mbit, 36.5, 47, kind="odd")
            for name, mbit in {"-100": 100, "-1000": 1000, "-unlimited": None}.items()
            for word, number in {"two": 2, "four": 4, "eight": 8}.items()
        ),
        Case("colocated-odd", 4, 4, 250, 36.5, 47, kind="odd", colocated=True),
        Case("towers", 4, 4, 250, 40, 16, towers=4),
        Case("small", 4, 4, 250, 10, 16),
        Case("medium", 4, 4, 250, 20, 16),
        Case("large", 4, 4, 250, 80, 16),
        Case("digits", 2, 2, 100, 8.866856, 8, batch=8, job="digits", args={"filters": 64, "hidden": 4096}),
        Case("recommend", 2, 2, None, 6.918532, 8, batch=512, job="recommend"),
        *(
            Case(f"layers{name}", 2, 2, mbit, 40, 10, batch=6144, job="tests.benchmarks.speed.layers", args=_LAYERS)
            for name, mbit in {"": 250, "-unlimited": None}.items()
        ),
        Case("unlimited-16", 2, 2, None, 40, 16, kind="equal"),
        Case("unlimited-300", 2, 2, None, 40, 300, kind="equal"),
    )
}
