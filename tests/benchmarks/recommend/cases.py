"""What is measured: clusters and networks, and the systems that train them."""

import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Dict, List, Optional

ROOT = Path(__file__).resolve().parents[3]
TF2 = ROOT / ".venv-tf2/bin/python"
HELD_OUT_BATCH, HELD_OUT_BATCHES, BUCKETS = 2000, 20, 131072


@dataclass(frozen=True)
class Case:
    """One cluster and one network. ``mbit``: of every network card, each way; None for no limit."""

    network: str
    ps: int
    workers: int
    mbit: Optional[float] = None
    batch: int = 512  # examples of one worker

    @property
    def name(self) -> str:
        """Return ``dlrm-2x4-100``: network, ps x workers, Mbit/s."""
        return f"{self.network}-{self.ps}x{self.workers}{'' if self.mbit is None else f'-{self.mbit:g}'}"

    @property
    def title(self) -> str:
        """Return the case in words."""
        net = "a network without limit" if self.mbit is None else f"{self.mbit:g} Mbit/s a host"
        return f"{_NETWORKS[self.network]}, {self.ps} ps and {self.workers} workers, {net}"


_NETWORKS = {"dlrm": "DLRM", "wide_and_deep": "wide and deep"}


@dataclass(frozen=True)
class System:
    """One way to train a case.

    ``module``: what every task runs. ``options``: of the script. ``train``: settings of this project.
    """

    name: str
    words: str  # in the report
    module: str
    options: Dict[str, Any] = field(default_factory=dict)
    train: Dict[str, Any] = field(default_factory=dict)
    python: str = sys.executable
    clustered: bool = True

    @property
    def is_coordinated(self) -> bool:
        """Return whether a chief of its own gives the workers their steps."""
        return self.module == COORDINATOR

    @property
    def is_ours(self) -> bool:
        return self.module == OURS

    def argv(self, case: Case, steps: int, data: Path, held_out: Path) -> List[Any]:
        """Return what follows the Python: the module and its arguments, as strings, dictionaries in JSON's place."""
        files: Dict[str, Any] = {"data": str(data), "held_out": str(held_out), "network": case.network}
        files.update(held_out_batch=HELD_OUT_BATCH, held_out_batches=HELD_OUT_BATCHES)
        if self.is_ours:
            train = {"steps": steps, "batch_size": case.batch, **self.train}
            return ["-m", self.module, "tests.benchmarks.recommend.job", "--train", train, "--args", files]
        counts = {"steps": steps, "batch": case.batch, "workers": case.workers, "buckets": BUCKETS}
        return ["-m", self.module, {"unique": False, "joined": False, **counts, **files, **self.options}]


OURS, STOCK, COORDINATOR = "jobs.main", "tests.benchmarks.recommend.stock", "tests.benchmarks.recommend.coordinator"
_UNIQUE, _JOINED = {"unique": True}, {"unique": True, "joined": True}

SYSTEMS = {
    each.name: each
    for each in (
        System("ours", "this project", OURS),
        System("ours-bfloat16", "this project, `wire: bfloat16`", OURS, train={"wire": "bfloat16"}),
        System(
            "ours-stale",
            "this project, `wire: bfloat16`, `table_staleness: 1`",
            OURS,
            train={"wire": "bfloat16", "table_staleness": 1},
        ),
        System("ours-async", "this project, `mode: async`", OURS, train={"mode": "async"}),
        System("ours-tf2", "this project, TensorFlow 2.21", OURS, python=str(TF2)),
        System(
            "ours-tf2-async",
            "this project, `mode: async`, TensorFlow 2.21",
            OURS,
            train={"mode": "async"},
            python=str(TF2),
        ),
        System("stock", "TensorFlow 1.15, partitioned variables", STOCK),
        System("stock-unique", "the same, each id of a batch looked up once", STOCK, _UNIQUE),
        System("stock-joined", "the same, and one table for all columns", STOCK, _JOINED),
        System("coordinator", "TensorFlow 2.21, ParameterServerStrategy", COORDINATOR, python=str(TF2)),
        System(
            "coordinator-unique",
            "ParameterServerStrategy, each id of a batch looked up once",
            COORDINATOR,
            _UNIQUE,
            python=str(TF2),
        ),
        System(
            "coordinator-joined",
            "ParameterServerStrategy, and one table for all columns",
            COORDINATOR,
            _JOINED,
            python=str(TF2),
        ),
        System("alone", "one plain process, TensorFlow 1.15", STOCK, _UNIQUE, clustered=False),
    )
}


def case_of(text: str) -> Case:
    """Return the case of a text like ``dlrm:2x4:100``; the last part may be left out.

    Raises:
      ValueError: the text is another.
    """
    network, size, *mbit = text.split(":")
    ps, workers = (int(each) for each in size.split("x"))
    if network not in _NETWORKS or len(mbit) > 1:
        raise ValueError(f"expected NETWORK:PSxWORKERS[:MBIT], with one of {', '.join(_NETWORKS)}, found {text}")
    return Case(network, ps, workers, float(mbit[0]) if mbit else None)
