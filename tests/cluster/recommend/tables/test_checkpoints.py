"""A checkpoint with tables is read with other servers, and a server that starts again gets its rows back."""

from pathlib import Path
from typing import Any, Dict, Sequence

import numpy as np
import pytest

from cluster.protocol.outcome import Outcome
from cluster.runtime.tf_compat import tf
from tests.cluster.recommend.tables import plain
from tests.support.nightly import few
from tests.support.training.jobs import clicks
from tests.support.training.processes import Cluster
from tests.support.waiting import eventually

JOB = "tests.support.training.jobs.clicks"
STEPS, BATCH = 4, 8


def rows_in(
    checkpoint: str, widths: Sequence[int] = (clicks.WIDTH, 1), is_delta: bool = False
) -> Dict[str, Dict[int, np.ndarray]]:
    """The row of every id in a checkpoint, by table; an id comes once, but for a delta."""
    reader = tf.train.load_checkpoint(checkpoint)
    found: Dict[str, Dict[int, np.ndarray]] = {}
    for kind in (f"embeddings_{width}" for width in widths):
        names = [name.decode() for name in reader.get_tensor(f"{kind}/tables")]
        for part in range(reader.get_tensor(f"{kind}/parts")):
            columns = (reader.get_tensor(f"{kind}/part_{part}/{column}") for column in ("ids", "tables", "rows"))
            for identity, table, row in zip(*columns):
                of_table = found.setdefault(names[table], {})
                assert is_delta or int(identity) not in of_table
                of_table[int(identity)] = row
    return found


def assert_same(found: Dict[str, Dict[int, Any]], expected: Dict[str, Dict[int, Any]]) -> None:
    for name in plain.TABLES:
        assert set(found[name]) == set(expected[name])
        for each, row in found[name].items():
            np.testing.assert_allclose(row, expected[name][each], rtol=5e-5, atol=5e-6, err_msg=f"{name} {each}")


def test_a_run_goes_on_from_a_checkpoint_of_other_servers_and_other_workers(tmp_path: Path) -> None:
    kept = {"checkpoint": {"dir": str(tmp_path / "kept")}}
    examples = clicks.examples(STEPS * BATCH)
    for number, (servers, workers) in enumerate([(2, 1), (3, 2), (1, 1)]):
        train = {**kept, "steps": (number + 1) * STEPS, "batch_size": BATCH // workers, "towers": 1}
        with Cluster(tmp_path / str(number), JOB, ps=servers, workers=workers) as cluster:
            cluster.start_all(train, {"optimizer": "adam", "steps": STEPS})
            assert cluster.finish().step == train["steps"]
        assert f"joined at step {number * STEPS}\n" in cluster.log("worker", 0)
    repeated = {name: np.concatenate([value] * 3) for name, value in examples.items()}
    expected = plain.train("adam", 3 * STEPS, BATCH, repeated)
    assert_same(rows_in(str(tmp_path / "kept" / f"model-{3 * STEPS}")), expected)


@pytest.mark.parametrize("victim", few([0, 1], [0]))
def test_a_worker_whose_batches_wait_for_their_rows_goes_on_in_the_middle_of_a_step(
    victim: int, tmp_path: Path
) -> None:
    train = {"steps": 8, "batch_size": 4, "table_staleness": 1, "checkpoint": {"every_s": 60}}
    with Cluster(tmp_path, "tests.support.training.jobs.late", ps=2, workers=2) as cluster:
        cluster.start_all(train, {"optimizer": "adagrad", "steps": STEPS})
        eventually("steps", lambda: cluster.step("worker", victim) >= 2)
        cluster.kill("worker", victim)
        cluster.start("worker", victim, train, {"optimizer": "adagrad", "steps": STEPS})
        assert cluster.finish().step == 8


@pytest.mark.nightly
@pytest.mark.parametrize(("mode", "staleness"), [("sync", 0), ("sync", 2), ("async", 0)])
def test_a_server_that_starts_again_gets_its_rows_from_the_newest_checkpoint(
    mode: str, staleness: int, tmp_path: Path
) -> None:
    args = {"optimizer": "adagrad", "steps": STEPS}
    workers = 1 if mode == "async" or staleness else 2  # an async one may come too late to train anything
    train: Dict[str, Any] = {"mode": mode, "steps": 40, "batch_size": BATCH // workers, "towers": 1,
                             "table_staleness": staleness,
                             "checkpoint": {"every_s": 60, "delta_every_s": 0.1}}  # fmt: skip
    with Cluster(tmp_path, JOB, ps=2, workers=workers) as cluster:
        cluster.start_all(train, args)
        eventually("a checkpoint", lambda: (cluster.progress("worker", 0) or Outcome(True)).checkpoint_step)
        cluster.kill("ps", 1)
        cluster.start("ps", 1, train)
        outcome = cluster.finish()
        joined = [int(line.split()[-1]) for line in cluster.log("worker", 0).splitlines() if "joined" in line]
    assert (outcome.step or 0) >= 40 and len(joined) == 2 and joined[1] > 0
    expected = plain.train("adagrad", 1, BATCH, clicks.examples(STEPS * BATCH))
    found = rows_in(str(outcome.checkpoint), is_delta=True)
    assert {name: set(rows) for name, rows in found.items()} == {name: set(expected[name]) for name in plain.TABLES}
    first = {name: {each: plain.first_row(name, each) for each in rows} for name, rows in found.items()}
    for name, rows in found.items():  # all of them have been trained, since the restart too
        assert all(not np.allclose(row, first[name][each]) for each, row in rows.items())
