"""Processes that wait for a task's next attempt: real ones, and a clock that the test turns."""

import json
import os
from typing import Any, Dict, List

import pytest

from cluster.protocol.standby import READY
from launch.agent.linux import processes
from launch.agent.protocol.messages import Exited, Prepared, Started
from launch.agent.tasks import standbys
from tests.support.agent.bench import Bench

pytestmark = pytest.mark.not_fast

TASK = "worker:0"
CLUSTER = '{"worker": ["a:1"]}'
# Waits only where it is to: what it then prints is in the log of its attempt.
SCRIPT = f"""
if [ -n "$LAUNCH_STANDBY" ]; then
    while [ -e slow ]; do sleep 0.01; done
    [ -e broken ] && echo broken && exit 1
    touch "$LAUNCH_TASK_DIR/{READY}"
    read line || exit 0
fi
echo "trains in $TF_CONFIG"
exec sleep 1000
"""


def prepare(bench: Bench, number: int = 1) -> None:
    """Let a process wait beside the attempt that runs."""
    bench.tasks.prepare(TASK, number, CLUSTER, 0)


def prepared(bench: Bench, number: int = 1) -> int:
    """Return the process that waits for this attempt, once it is reported."""
    prepare(bench, number)
    bench.comes(Prepared, lambda event: event == Prepared(TASK, number))
    (pid,) = waiting()
    return pid


def end_first(bench: Bench) -> None:
    """End the attempt that runs."""
    bench.tasks.stop(TASK, 0.0, bench.now)
    bench.comes(Exited, lambda event: event.attempt == 0)


def newest(bench: Bench) -> int:
    """Return the process of the newest attempt."""
    return [event.pid for event in bench.events if isinstance(event, Started)][-1]


def waiting() -> List[int]:
    """Return the processes of this test that wait."""
    mine = [each for each in processes.table() if each.parent == os.getpid() and each.state != "Z"]
    return [each.pid for each in mine if processes.environment(each.pid).get("LAUNCH_STANDBY")]


@pytest.fixture(autouse=True)
def first(bench: Bench) -> None:
    """The first attempt runs, in the run's own cluster."""
    bench.sh(SCRIPT)


def test_the_process_that_waited_is_the_next_attempt_and_knows_its_cluster(bench: Bench) -> None:
    waits = prepared(bench)
    assert list(bench.tasks.running) == [TASK] and bench.folder.log(TASK, 1).read_text() == ""
    end_first(bench)
    bench.tasks.start(TASK, 1, CLUSTER, 0)
    assert newest(bench) == waits
    bench.logged("trains in ", attempt=1)
    task = {"type": "worker", "index": 0}
    place = {"cluster": json.loads(CLUSTER), "task": task, "environment": "cloud"}
    assert json.loads(bench.folder.log(TASK, 1).read_text().partition("trains in ")[2]) == place


@pytest.mark.parametrize(("attempt", "cluster"), [(2, CLUSTER), (1, '{"worker": ["b:1"]}')], ids=["attempt", "cluster"])
def test_a_process_that_waited_for_another_turn_is_ended_and_a_new_one_started(
    bench: Bench, attempt: int, cluster: str
) -> None:
    waited = prepared(bench)
    end_first(bench)
    bench.tasks.start(TASK, attempt, cluster, 0)
    assert newest(bench) != waited and processes.inspect(waited) is None
    bench.logged("trains in ", attempt=attempt)


def test_a_process_that_is_not_ready_when_its_turn_comes_takes_it_once_it_is(bench: Bench) -> None:
    (bench.code / "slow").touch()
    prepare(bench)
    assert bench.tasks.prepared(TASK) == "loads"
    (waited,) = waiting()
    end_first(bench)
    bench.tasks.start(TASK, 1, CLUSTER, 0)
    assert newest(bench) == waited and bench.tasks.prepared(TASK) is None
    (bench.code / "slow").unlink()
    bench.logged("trains in ", attempt=1)


@pytest.mark.parametrize(("options", "number"), [({"waits": True}, 1), ({}, 0), ({"waits": True, "spare": True}, 0)])
def test_first_attempts_start_before_their_turn_where_their_program_can_wait(
    bench: Bench, options: Dict[str, Any], number: int
) -> None:
    bench.end()
    bench.load("sh", "-c", SCRIPT, **options)
    bench.tasks.prepare_first()
    assert len(waiting()) == number and not bench.tasks.running
    if number:
        bench.comes(Prepared)
        assert bench.tasks.prepared(TASK) == "ready"
        pids = waiting()
        bench.tasks.start(TASK, 0)
        assert [newest(bench)] == pids


def test_a_process_that_has_ended_before_its_turn_is_replaced(bench: Bench) -> None:
    (bench.code / "broken").touch()
    prepare(bench)
    bench.comes(Prepared)
    assert bench.tasks.prepared(TASK) == "ended"
    (bench.code / "broken").unlink()
    end_first(bench)
    bench.tasks.start(TASK, 1, CLUSTER, 0)
    bench.logged("trains in ", attempt=1)
    assert bench.folder.log(TASK, 1).read_text().startswith("broken\n"), "the reason of its end is lost"


def test_of_a_process_that_the_agent_ends_before_its_turn_nothing_is_left(bench: Bench) -> None:
    prepared(bench)
    bench.tasks.stop_all(0.0, bench.now)
    assert bench.tasks.prepared(TASK) is None and not bench.folder.log(TASK, 1).exists()


def test_a_process_that_never_becomes_ready_gets_no_turn(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    (bench.code / "slow").touch()
    prepare(bench)
    (waited,) = waiting()
    end_first(bench)
    monkeypatch.setattr(standbys, "PREPARE_S", 0.0)
    bench.tasks.start(TASK, 1, CLUSTER, 0)
    assert newest(bench) != waited and processes.inspect(waited) is None


def test_a_process_that_cannot_be_prepared_is_reported_and_ends_nothing(bench: Bench) -> None:
    (bench.code / "broken").touch()
    prepare(bench)
    bench.comes(Prepared, lambda event: event == Prepared(TASK, 1))
    assert list(bench.tasks.running) == [TASK] and waiting() == []
    assert not [event for event in bench.events if isinstance(event, Exited)]


def test_another_process_may_wait_in_the_place_of_one_and_none_is_left_in_the_end(bench: Bench) -> None:
    first, second = prepared(bench), prepared(bench, 2)
    assert first != second
    bench.tasks.stop_all(0.0, bench.now)
    assert waiting() == [] and bench.tasks.sweep() == 0
