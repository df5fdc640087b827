"""Which step is traced, and what becomes of its file."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any, List, Optional

import pytest

from cluster.runtime.tf_compat import tf
from cluster.task import Train
from cluster.trace import recording
from cluster.trace.recording import Recorded, Tracing


@pytest.fixture
def replica() -> Any:
    """One that counts."""
    with tf.Graph().as_default() as graph:
        counter = tf.get_variable("counter", [], tf.int64, tf.zeros_initializer(), use_resource=False)
        count, begin = tf.assign_add(counter, 1), counter.initializer
    session = tf.Session(graph=graph)
    session.run(begin)
    layout = SimpleNamespace(sizes={})
    yield SimpleNamespace(graph=graph, layout=layout, buckets=[], count=count, session=session)
    session.close()


def train(replica: Any, folder: Optional[Path], step: Optional[int], joined: int = 0, stride: int = 1) -> List[int]:
    """Takes steps up to 6; those that a recording session took."""
    tracing = Tracing("worker:1", Train(trace=step, steps=6), folder)
    tracing.begin(joined)
    watched = []
    for before in range(joined, 6, stride):
        with tracing.watch(replica.session, before, replica) as session:
            session.run(replica.count)
            watched += [before + 1] if isinstance(session, Recorded) else []
    return watched


def files(folder: Path) -> List[str]:
    return sorted(path.name for path in folder.glob("*"))


def test_only_the_making_of_the_step_is_traced_and_nothing_without_the_key_or_a_folder(
    replica: Any, tmp_path: Path
) -> None:
    assert train(replica, tmp_path / "trace", 3) == [3]
    assert files(tmp_path / "trace") == ["step_3.worker_1.json"]
    assert train(replica, tmp_path / "none", None) == train(replica, None, 3) == []
    assert not (tmp_path / "none").exists()


def test_the_file_tells_what_ran(replica: Any, tmp_path: Path, capsys: Any) -> None:
    train(replica, tmp_path, 1)
    told = json.loads((tmp_path / "step_1.worker_1.json").read_text())
    assert (told["otherData"]["task"], told["otherData"]["step"]) == ("worker:1", 1)
    assert "step 1" in {event["name"] for event in told["traceEvents"] if event["ph"] == "X"}
    assert f"train.trace: step 1 is in {tmp_path}/step_1.worker_1.json\n" in capsys.readouterr().out


def test_where_others_take_steps_meanwhile_the_next_of_its_own_is_traced(replica: Any, tmp_path: Path) -> None:
    assert train(replica, tmp_path, 2, stride=3) == [4]
    assert files(tmp_path) == ["step_4.worker_1.json"]


@pytest.mark.parametrize(("step", "joined", "why"), [(3, 3, "it joined at step 3"), (7, 0, "training ends at step 6")])
def test_a_step_that_does_not_come_is_told_and_nothing_is_written(
    replica: Any, tmp_path: Path, capsys: Any, step: int, joined: int, why: str
) -> None:
    assert train(replica, tmp_path / "trace", step, joined) == []
    assert not (tmp_path / "trace").exists()
    assert capsys.readouterr().out == f"train.trace: worker:1 does not trace step {step}: {why}\n"


def test_the_next_steps_are_traced_too_while_tensorflow_has_not_recorded_all_of_one(
    replica: Any, tmp_path: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    missing = iter([2, 1, 0])
    monkeypatch.setattr(recording, "count_unrecorded", lambda _: next(missing))
    assert train(replica, tmp_path, 2) == [2, 3, 4]
    assert files(tmp_path) == [f"step_{step}.worker_1.json" for step in (2, 3, 4)]
    assert "TensorFlow did not record 2 of its transfers, so the next step is traced, too" in capsys.readouterr().out


def test_at_most_five_steps_are_traced(replica: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recording, "count_unrecorded", lambda _: 1)
    assert train(replica, tmp_path, 1) == [1, 2, 3, 4, 5]


def test_a_disk_that_does_not_take_the_file_ends_no_training(replica: Any, tmp_path: Path, capsys: Any) -> None:
    (tmp_path / "trace").write_text("in the way")
    train(replica, tmp_path / "trace", 2)
    assert f"train.trace: {tmp_path}/trace/step_2.worker_1.json cannot be written: " in capsys.readouterr().out


def test_a_trace_that_cannot_be_made_ends_no_training(
    replica: Any, tmp_path: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> Any:
        raise ValueError("no such attribute")

    monkeypatch.setattr(recording, "spans", fail)
    train(replica, tmp_path / "trace", 2)
    assert "step_2.worker_1.json cannot be written: ValueError: no such attribute\n" in capsys.readouterr().out
