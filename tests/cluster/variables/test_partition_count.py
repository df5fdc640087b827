"""The number of slices: chosen by the chief, found by all others, and chosen anew when it was lost."""

import threading
from pathlib import Path
from typing import Any, Callable, List, Tuple

import pytest

from cluster.job import Job
from cluster.protocol.outcome import Outcome, Reporter
from cluster.runtime import server
from cluster.runtime.tf_compat import tf
from cluster.task import Task, Train
from cluster.training.trainer import Trainer, train
from cluster.variables.partition_count import BandwidthProbe, CountNote, PartitionCount, PartitionCountChanged
from cluster.variables.placement import FEWEST_SLICES, MOST_SLICES
from cluster.variables.profile import VariableProfile
from launch.agent.linux.sockets import free_ports
from tests.benchmarks.speed import job
from tests.support.training.alone import saved, train_alone
from tests.support.waiting import PATIENCE_S

LARGE = {"w": VariableProfile((1000, 1000), 4, is_dense=True)}
SMALL = {"w": VariableProfile((10, 10), 4, is_dense=True)}
ARGS = {"shapes": [[800, 250]]}  # 800 kB


def tasks() -> List[Task]:
    """A ps and two workers on free ports of this machine."""
    ports = free_ports(3)
    cluster = {"ps": [f"127.0.0.1:{ports[0]}"], "worker": [f"127.0.0.1:{port}" for port in ports[1:]]}
    return [Task("ps", 0, cluster), Task("worker", 0, cluster), Task("worker", 1, cluster)]


def note_at(ps: Task, serving: Any) -> Tuple[CountNote, Any]:
    """The note, and a session on the ps itself that can read and change it."""
    with tf.Graph().as_default() as graph:
        note = CountNote()
    return note, server.connect(ps, serving, graph)


def serve(task: Task) -> Callable[[], Any]:
    """Starts the task's server now; returns what returns it."""
    serving = server.start(task)
    return lambda: serving


def about_to_settle(task: Task, number: int) -> Tuple[PartitionCount, Any]:
    """A worker that has this number, and a session of its graph."""
    serving = server.start(task)
    partition_count = PartitionCount(task, Train(), lambda: serving)
    partition_count.number = number
    with tf.Graph().as_default() as graph:
        partition_count.keep()
    return partition_count, server.connect(task, serving, graph)


def test_the_chief_chooses_and_whoever_comes_later_finds_its_number() -> None:
    ps, chief, other = tasks()
    note, session = note_at(ps, server.start(ps))
    chiefs = PartitionCount(chief, Train(), serve(chief))
    number = chiefs.choose(LARGE)
    assert FEWEST_SLICES <= number <= MOST_SLICES
    assert note.read(session) == number
    note.leave(session, 77)  # what nobody here would choose
    assert chiefs.choose(LARGE) == PartitionCount(other, Train(), serve(other)).choose(LARGE) == 77


def test_a_number_that_was_lost_is_left_again_by_whoever_comes_first_and_others_compare() -> None:
    ps, chief, other = tasks()
    note, session = note_at(ps, server.start(ps))
    assert not note.is_left(session)
    others, others_session = about_to_settle(other, 5)
    others.settle(others_session)
    assert note.read(session) == 5
    chiefs, chiefs_session = about_to_settle(chief, 6)
    with pytest.raises(PartitionCountChanged):
        chiefs.settle(chiefs_session)
    others.settle(others_session)


@pytest.mark.parametrize(
    "variables, settings", [(SMALL, Train()), (LARGE, Train(clip_norm=1.0)), (LARGE, Train(backup_workers=1))]
)
def test_where_there_is_nothing_to_choose_nobody_is_asked(variables: Any, settings: Train) -> None:
    task = Task("worker", 1, {"ps": ["127.0.0.1:1"], "worker": ["127.0.0.1:2"] * 2})
    nobody = PartitionCount(task, settings, lambda: pytest.fail("the server has started"))
    assert nobody.choose(variables) == FEWEST_SLICES
    nobody.keep()
    nobody.settle(None)


def test_a_worker_builds_anew_when_a_new_chief_has_chosen_another_number(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ps, chief, other = tasks()
    serving = server.start(ps)
    threading.Thread(target=server.wait_until_done, args=[ps, serving], daemon=True).start()
    note, session = note_at(ps, serving)
    settings, trained = Train(steps=5, tower_batch_size=1), Job.from_module(job)
    note.leave(session, 4)
    worker = Trainer(trained, other, settings, ARGS, Reporter(None), None)
    worker.setup()
    assert len(worker.replica.buckets) == 4
    note.leave(session, 8)
    ended: List[Outcome] = []

    def lead() -> None:
        ended.append(train(trained, chief, settings, ARGS, Reporter(None), str(tmp_path)))

    leading = threading.Thread(target=lead, daemon=True)
    leading.start()
    outcome = worker.loop()
    leading.join(PATIENCE_S)
    assert len(worker.replica.buckets) == 8
    assert "worker:1: building the graph again, because the chief chose other slices" in capsys.readouterr().out
    assert [each.cause for each in (outcome, *ended)] == [None, None]
    assert ended[0].step == 5


def test_checkpoints_between_steps_leave_the_copies_of_slices_to_the_steps(tmp_path: Path) -> None:
    """TensorFlow's Saver reads a slice as a model does: it once took the copies, and the next step waited for ever."""
    outcome = train_alone(job, tmp_path, ARGS, steps=6, batch_size=1, checkpoint={"every_s": 0})
    assert outcome.cause is None
    assert outcome.step == outcome.checkpoint_step == 6
    assert saved(outcome)["v000"].shape == (800, 250)
    assert (saved(outcome)["v000"] == saved(outcome)["v000"][0, 0]).all()


def test_a_link_is_as_quick_as_what_it_sends_says() -> None:
    """Nothing here is slow; what is told of the time must hold all the same."""
    ps, chief, _ = tasks()
    server.start(ps)
    with tf.Graph().as_default() as graph:
        probe = BandwidthProbe(1, "/job:worker/task:0/device:CPU:0")
    speed = probe.measure(server.connect(chief, server.start(chief), graph))
    assert 1e6 < speed.bytes_per_s < 1e11  # a transfer that TensorFlow left out was as quick as 1.5e11
    assert 0 < speed.busy <= 1
