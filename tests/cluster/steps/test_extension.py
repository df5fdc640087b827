"""Extensions of a model: whose hooks are called, and what is refused rather than lost."""

from types import SimpleNamespace
from typing import Any, List

import pytest

from cluster.recommend.once.async_once import OnceAsyncWorker
from cluster.recommend.once.once_steps import OnceWorker
from cluster.steps.extension import only
from cluster.steps.sync_worker import SyncWorker


def test_of_two_things_none_is_lost_in_silence() -> None:
    assert only([None, None]) is None and only([None, 0]) == 0
    with pytest.raises(ValueError, match="expected at most one of the model's extensions"):
        only([1, None, 2])


@pytest.mark.parametrize("kind", [SyncWorker, OnceWorker, OnceAsyncWorker])
def test_every_worker_runs_the_beginnings_of_all_extensions(kind: Any) -> None:
    def begin(*_: Any) -> None:
        seen.append("places")

    seen: List[str] = []
    worker = object.__new__(kind)
    worker._beginnings = (seen.append, seen.append)
    worker._local = worker._era = worker._life = 0
    worker._places = SimpleNamespace(begin=begin, begin_life=begin)
    worker.begin_reading("session")
    assert seen == ["session", "session", *(["places"] if kind is not SyncWorker else [])]
