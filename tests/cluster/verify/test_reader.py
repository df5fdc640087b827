"""The batches of one worker, read once more."""

import gc
import weakref

import numpy as np

from cluster.job import Job
from cluster.task import Task, Train
from cluster.verify.verified_run import BatchReader, VerifiedRun
from tests.support.training.jobs import verified

CLUSTER = {"ps": ["127.0.0.1:1"], "worker": ["127.0.0.1:2", "127.0.0.1:3"]}
RUN = VerifiedRun(Job.from_module(verified).with_args({}), Train.from_dict({}), {}, [], [])


def reader(worker: int) -> BatchReader:
    return BatchReader(RUN, Task("worker", worker, CLUSTER, 8))


def test_each_worker_s_batches_are_those_of_its_shard_in_order() -> None:
    x = verified.examples()["x"]
    for worker in range(2):
        one, other = reader(worker), reader(worker)
        (first, digest), (second, another) = one.next(), one.next()
        assert other.next()[1] == digest != another
        for values, begin in ((first, 0), (second, 8)):
            assert any(np.array_equal(value, x[worker::2][begin : begin + 8]) for value in values)


def test_a_reader_that_is_dropped_closes_no_session_in_whichever_thread_collects_garbage() -> None:
    dropped = reader(0)
    dropped.next()
    session = weakref.ref(dropped._session)
    del dropped
    gc.collect()
    assert session() is not None
