"""Tables on several servers, by several towers and workers, are trained as ordinary variables in one plain process."""

from typing import Any, Dict

import numpy as np
import pytest

from cluster.errors import JobError
from cluster.job import Job
from cluster.model.device_pool import Member
from cluster.runtime.tf_compat import tf
from cluster.task import Task, Train
from cluster.training.builder import Builder
from tests.cluster.tables import plain
from tests.support.training.alone import joined
from tests.support.training.jobs import clicks

STEPS, BATCH = 5, 8
TASK = Task("worker", 0, {"ps": ["a:1", "b:1"], "worker": ["c:1", "d:1"]}, batch_size=4)


@pytest.fixture(autouse=True)
def several_servers_in_one_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cluster.tables.store._PART_OF_MEMORY", 0.05)


def rows(replica: Any, session: Any) -> Dict[str, Dict[int, np.ndarray]]:
    """The row of every id that has one, by table."""
    found: Dict[str, Dict[int, np.ndarray]] = {}
    for store in replica.tables.all:
        with replica.graph.as_default():
            part = session.run(store.live_part(tf.zeros([], tf.int64), store.places.count))
        for index, table in enumerate(store.all_tables):
            is_its = part["tables"] == index
            ids = plain.ids_of(part["keys"][is_its], table.name)
            assert not set(ids) & set(found.get(table.name, {}))  # on another server
            found.setdefault(table.name, {}).update(zip(map(int, ids), part["rows"][is_its]))
    return found


@pytest.mark.parametrize(
    ("optimizer", "settings"),
    [
        *[(name, {}) for name in sorted(clicks.OPTIMIZERS)],
        ("adagrad", {"accumulate": 2}),
        ("adam", {"sync": "plain"}),
        ("momentum", {"mode": "async"}),
    ],
    ids=str,
)
def test_rows_are_those_of_ordinary_variables(optimizer: str, settings: Dict[str, Any]) -> None:
    parts = settings.get("accumulate", 1)
    train = Train.from_dict({"batch_size": BATCH // 2 // parts, "towers": 2, **settings})
    replica, session = joined(Job.from_module(clicks), train, {"steps": STEPS, "optimizer": optimizer})
    for _ in range(STEPS):
        replica.stepper.step(session)
    found = rows(replica, session)
    expected = plain.train(optimizer, STEPS, BATCH, clicks.examples(STEPS * BATCH))
    for name in plain.TABLES:
        assert set(found[name]) == set(expected[name])
        for each, row in found[name].items():
            np.testing.assert_allclose(row, expected[name][each], rtol=2e-5, atol=2e-6, err_msg=f"{name} {each}")


@pytest.mark.filterwarnings("ignore:Converting sparse IndexedSlices")
def test_a_table_that_is_read_whole_and_a_variable_with_the_name_of_its_rows_are_refused() -> None:
    def model(**batch: Any) -> Any:
        return clicks.model(**batch) + tf.get_variable(f"embeddings_{clicks.WIDTH}/bias", [])

    def with_a_norm(**batch: Any) -> Any:
        loss = clicks.model(**batch)
        return loss + sum(tf.nn.l2_loss(each) for each in tf.trainable_variables())

    refused = {model: "no variable with the name of the tables' rows", with_a_norm: "rows of embedding tables, by"}
    for function, words in refused.items():
        job = Job(__file__, clicks.inputs, function, clicks.optimizer)
        with pytest.raises(JobError, match=words):
            Builder(job, TASK, Train(tower_batch_size=4), {"steps": STEPS}, [Member(TASK, ["CPU:0"])]).build()
