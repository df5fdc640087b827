"""Workers that begin with the same batch are named, and constant data that is sharded accuses nobody."""

from pathlib import Path
from typing import Any, Callable, Dict

import numpy as np
import pytest

from cluster.job import Job
from cluster.model.device_pool import PoolMember
from cluster.runtime.tf_compat import tf
from cluster.spec import load
from cluster.task import Task, Train
from cluster.training.job_warnings import FirstBatches, fingerprint, same
from tests.support.training.jobs import parts
from tests.support.training.threads import ThreadedRun

HOSTS = "job: x\ncluster: {ps: [localhost], worker: [localhost, localhost]}\n"
CLUSTER = {"ps": ["a:1"], "worker": ["b:1", "c:1"]}


def warned(folder: Path, capsys: Any, args: Dict[str, Any], **settings: Any) -> bool:
    """Whether a run of two workers has a warning about their first batches in the chief's log."""
    (folder / "hosts.yaml").write_text(HOSTS)
    train = Train.from_dict({"steps": 3, "batch_size": 4, "towers": 2, **settings})
    ThreadedRun(load(folder / "hosts.yaml"), parts.__name__, train, args, folder / "saved").start().finish()
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("warning: ")]
    place = Job.from_module(parts).place("inputs")
    assert lines in ([], [
        f"warning: {place}: expected inputs to begin with a different batch on each worker, found the same on worker:0,"
        " worker:1; give each worker its part: data.shard(task.num_workers, task.worker_index)"
    ])  # fmt: skip
    return bool(lines)


@pytest.mark.parametrize(
    ("args", "settings"),
    [
        ({"ragged": True}, {}),
        ({}, {"mode": "async", "steps": 300}),  # of which the second worker must take one
        ({}, {"replication": "in-graph"}),
        ({}, {"sync": "stock", "steps": 20}),
    ],
)
def test_workers_that_read_the_same_batch_first_are_named(
    tmp_path: Path, capsys: Any, args: Dict[str, Any], settings: Dict[str, Any]
) -> None:
    assert warned(tmp_path, capsys, args, **settings)


@pytest.mark.parametrize("args", [{"shard": True}, {"shard": True, "alike": True, "ragged": True}])
def test_workers_with_a_shard_each_are_not_named_even_if_all_examples_are_one(
    tmp_path: Path, capsys: Any, args: Dict[str, Any]
) -> None:
    assert not warned(tmp_path, capsys, args)


def first(index: int, is_first: bool, workers: int = 2) -> FirstBatches:
    task = Task("worker", index, {**CLUSTER, "worker": CLUSTER["worker"][:workers]})
    with tf.Graph().as_default():
        batches = [{"x": tf.constant([1.0, 2.0])}]
        return FirstBatches(Job.from_module(parts), [PoolMember(task, ["CPU:0"])], batches, is_first)


def test_only_the_first_process_of_one_of_many_workers_makes_a_number() -> None:
    assert first(0, True).fetches(0) and first(1, True).fetches(0)
    assert not first(0, False).fetches(0) and not first(0, True, workers=1).fetches(0)


def test_the_most_workers_with_one_number_are_found_and_zero_is_none() -> None:
    assert same({0: 5, 1: 7, 2: 7, 3: 7, 4: 5}) == [1, 2, 3]
    assert same({0: 0, 1: 0, 2: 5}) == same({}) == []


def number(make: Callable[[], Any]) -> int:
    with tf.Graph().as_default(), tf.Session() as session:
        return int(session.run(fingerprint({"x": make()})))


def constant(value: Any, dtype: Any = None) -> Callable[[], Any]:
    return lambda: tf.constant(value, dtype)


def ragged(rows: Any) -> Callable[[], Any]:
    return lambda: tf.ragged.constant(rows)


def sparse(indices: Any, values: Any) -> Callable[[], Any]:
    return lambda: tf.SparseTensor(indices, values, [2, 4])


SAME_EXAMPLES: Dict[str, Callable[[], Any]] = {
    "floats": constant([[1.0, 2.0]] * 20),
    "texts": constant([b"a", b"a"]),
    "uint16": constant([3, 3], tf.uint16),
    "none": constant(np.zeros([0, 3])),
    "one": constant([[1.0, 2.0]]),
    "no batch": constant(3.0),
    "ragged": ragged([[1, 2], [1, 2]]),
    "ragged twice": ragged([[[1], [2, 3]], [[1], [2, 3]]]),
    "sparse": sparse([[0, 1], [0, 3], [1, 1], [1, 3]], [5.0, 6.0, 5.0, 6.0]),
    "nested": lambda: {"a": (tf.constant([1, 1]), tf.constant([[2], [2]]))},
}
OTHER_EXAMPLES: Dict[str, Callable[[], Any]] = {
    "floats": constant([[1.0, 2.0], [1.0, 3.0]]),
    "shape": constant([1.0, 2.0, 1.0, 3.0]),
    "texts": constant([b"a", b"b"]),
    "bool": constant([True, False]),
    "uint16": constant([3, 4], tf.uint16),
    "ragged": ragged([[1, 1], [1, 1, 1]]),
    "ragged twice": ragged([[[1], [2, 3]], [[1, 2], [3]]]),
    "sparse": sparse([[0, 1], [0, 3], [1, 1], [1, 3]], [5.0, 6.0, 5.0, 7.0]),
    "sparse rows": sparse([[0, 1], [0, 3]], [5.0, 5.0]),
    "nested": lambda: {"a": (tf.constant([1, 1]), tf.constant([[2], [3]]))},
}


@pytest.mark.parametrize("kind", SAME_EXAMPLES)
def test_a_batch_of_one_example_many_times_over_has_no_number(kind: str) -> None:
    assert number(SAME_EXAMPLES[kind]) == 0


def test_batches_of_other_examples_have_other_numbers_and_equal_ones_the_same() -> None:
    numbers = [number(make) for make in OTHER_EXAMPLES.values()]
    assert len({0, *numbers}) == 1 + len(OTHER_EXAMPLES)
    assert [number(make) for make in OTHER_EXAMPLES.values()] == numbers
