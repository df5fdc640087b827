"""A GPU that fails is an incident of its host; an elastic run continues without its tasks. Replayed."""

from typing import Any

from launch.agent.protocol.messages import GpuFailed, Start, Stop
from launch.agent.supervision.elastic import END_S
from launch.agent.supervision.run_state import Phase
from tests.launch.agent.supervision.test_drain import Draining, cluster
from tests.support.agent.histories import Replay, advanced

OFF = "GPU 1 (0000:3b:00): Xid 79, it has fallen off the bus"
LOST = GpuFailed(["worker:1"], OFF)


def incidents(run: Replay) -> Any:
    return [(each["kind"], each["host"], each["cause"]) for each in run.status()["incidents"]]


def test_a_run_whose_hosts_are_all_needed_names_the_card_once_and_goes_on() -> None:
    run = Replay("ps:0@a", "worker:0@a", "worker:1@d")
    run.up()
    assert run.at(5, LOST) == [] and run.at(20, LOST) == []
    assert incidents(run) == [("gpu", "d", OFF)]
    assert run.run.state.phase is Phase.TRAINING
    assert run.at(21, GpuFailed(["worker:1"], "GPU 0 (0000:af:00): x")) == [] and len(incidents(run)) == 2


def test_an_elastic_run_ends_the_formation_at_once_and_continues_without_the_task() -> None:
    run = Draining("ps:0@a", "worker:0@a", "worker:1@d")
    stops = run.at(5, LOST)
    assert sorted(map(str, stops)) == sorted(str(Stop(name, END_S, 0)) for name in ("ps:0", "worker:0", "worker:1"))
    starts = run.gone(7, stops)
    assert {each.task for each in starts if isinstance(each, Start)} == {"ps:0", "worker:0"}
    assert cluster(starts) == {"ps": ["a:2222"], "worker": ["a:2222"]}
    assert run.formation()["drained"] == ["worker:1"]
    assert run.at(20, LOST) == [] and incidents(run) == [("gpu", "d", OFF)]
    run.at(21, advanced("worker:0", 9, 1))
    (incident,) = run.status()["incidents"]
    assert [deed["what"] for deed in incident["did"]] == [
        "continues without worker:1 until `launch drain --back`", "formation 1: 1 of 2 workers, 1 of 1 ps",
    ]  # fmt: skip


def test_the_chief_of_an_elastic_run_is_not_left_out() -> None:
    run = Draining("ps:0@a", "worker:0@a", "worker:1@d")
    assert run.at(5, GpuFailed(["worker:0"], OFF)) == []
    assert incidents(run) == [("gpu", "a", OFF)] and run.run.state.phase is Phase.TRAINING


def test_a_task_without_which_too_few_workers_are_left_stays() -> None:
    run = Draining("ps:0@a", "worker:0@a", "worker:1@d", min_workers=2)
    assert run.at(5, LOST) == [] and run.run.state.phase is Phase.TRAINING


def test_a_run_that_closes_takes_no_notice() -> None:
    run = Draining("ps:0@a", "worker:0@a", "worker:1@d")
    run.run.close("stopped", "enough", 4)
    run.at(5, LOST)
    assert incidents(run) == []
