"""Models of tables that are drawn at random, trained by several servers, workers and towers as in one process.

Some go on from a checkpoint, with another number of servers.
"""

import json
from pathlib import Path
from typing import Any, Dict

import numpy as np
import pytest

from cluster.spec import load
from cluster.task import Train
from tests.cluster.recommend.tables import plain, reference
from tests.support.nightly import few
from tests.support.training.jobs import drawn
from tests.support.training.threads import ThreadedRun

pytestmark = pytest.mark.usefixtures("several_servers_in_one_process")
JOB = "tests.support.training.jobs.drawn"
STEPS, BATCH = 6, 24
COPIES = {"between-graph": 8, "in-graph": 4}  # of the model, at most: TensorFlow handles the graph for most of the time


def rows_of(checkpoint: Dict[str, Any]) -> reference.Rows:
    """The row of every id of each table, which has each id once."""
    found: reference.Rows = {}
    for kind in (name[: -len("/updates")] for name in checkpoint if name.endswith("/updates")):
        names = [name.decode() for name in checkpoint[f"{kind}/tables"]]
        found.update({name: {} for name in names})
        for part in range(checkpoint[f"{kind}/parts"]):
            columns = (checkpoint[f"{kind}/part_{part}/{column}"] for column in ("ids", "tables", "rows"))
            for identity, table, row in zip(*columns):
                assert found[names[table]].setdefault(int(identity), row) is row
    return found


def drawn_case(seed: int) -> Dict[str, Any]:
    random = np.random.RandomState(1000 + seed)
    workers, towers, accumulate = (int(random.choice(some)) for some in ([1, 2, 3], [1, 2], [1, 2]))
    settings = {"towers": towers, "accumulate": accumulate, "sync": str(random.choice(["overlapped", "plain"])),
                "replication": str(random.choice(["between-graph", "between-graph", "in-graph"]))}  # fmt: skip
    if workers * towers * accumulate > COPIES[str(settings["replication"])]:
        settings["accumulate"] = accumulate = 1
    refused = plain.marks(drawn.tables(seed)[0].name)  # by TensorFlow's hash table
    args = {"seed": seed, "steps": STEPS // 2, "dense": bool(random.randint(0, 4)), "also": refused,
            "optimizer": str(random.choice(sorted(drawn.OPTIMIZERS)))}  # fmt: skip
    batch = BATCH // (workers * towers * accumulate)
    return {"ps": [int(random.randint(1, 5)) for _ in range(1 + seed % 2)], "workers": workers, "args": args,
            "train": {**settings, "batch_size": batch}}  # fmt: skip


def trained(case: Dict[str, Any], folder: Path) -> Dict[str, Any]:
    """The last checkpoint of a run, or of two, the second of which goes on with other ps."""
    for number, ps in enumerate(case["ps"], 1):
        tasks = {"ps": [{"host": "localhost", "count": ps}],
                 "worker": [{"host": "localhost", "count": case["workers"]}]}  # fmt: skip
        hosts = folder / f"drawn{number}.yaml"
        hosts.write_text(json.dumps({"name": "drawn", "job": JOB, "cluster": tasks}))
        settings = Train.from_dict({**case["train"], "steps": STEPS * number // len(case["ps"])})
        checkpoint = ThreadedRun(load(hosts), JOB, settings, case["args"], folder / "run").start().finish()
    return checkpoint


@pytest.mark.parametrize("seed", few([*range(4), 19], [0]))
def test_rows_and_variables_are_those_of_one_process(seed: int, tmp_path: Path) -> None:
    case = drawn_case(seed)
    check(case, trained(case, tmp_path), *reference.train(case["args"], BATCH, STEPS))


@pytest.mark.parametrize(("seed", "staleness"), few([(2, 2), (4, 1), (6, 2), (14, 3), (34, 2)], [(2, 2)]))
def test_rows_that_a_step_looks_up_are_behind_by_exactly_so_many_updates(
    seed: int, staleness: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "cluster.recommend.tables.store._FRESH", 1
    )  # ids of all workers are forgotten between lookup and update
    case = drawn_case(seed)
    case["train"].update(table_staleness=staleness, replication="between-graph")
    check(case, trained(case, tmp_path), *reference.train(case["args"], BATCH, STEPS, staleness))


def check(case: Dict[str, Any], checkpoint: Dict[str, Any], rows: reference.Rows, dense: Dict[str, Any]) -> None:
    found = rows_of(checkpoint)
    for name, expected in rows.items():
        assert set(expected) == set(found[name])
        for each, row in expected.items():
            np.testing.assert_allclose(found[name][each], row, rtol=5e-5, atol=5e-6, err_msg=f"{name} {each} {case}")
    for name, value in dense.items():
        np.testing.assert_allclose(checkpoint[name], value, rtol=5e-5, atol=5e-6, err_msg=f"{name} {case}")
