"""An elastic run goes on without hosts that are lost, and takes them back: replayed with a clock of numbers."""

import json
from typing import Any, Dict, List

import pytest

from cluster.protocol.save_request import HOLD
from launch.agent.protocol.messages import (
    End,
    Exited,
    Go,
    Joined,
    KillRequested,
    Lost,
    Order,
    RestartRequested,
    Save,
    Start,
    Stop,
)
from launch.agent.supervision.elastic import END_S, REST_S
from launch.agent.supervision.formation import PATIENCE_S, SETTLE_S
from launch.agent.supervision.run_state import Phase
from tests.support.agent.histories import Replay, advanced, failed, started, succeeded

FOUR = ("ps:0@a", "ps:1@b", "worker:0@a", "worker:1@c", "worker:2@d")


class Elastic(Replay):
    """A run of which hosts get lost."""

    def __init__(self, *tasks: str, **options: Any):
        super().__init__(*(tasks or FOUR), **{"min_workers": 2, **options})

    def obey(self, now: float, orders: List[Order]) -> List[Order]:
        """What is stopped is gone, and what is started runs; returns the orders that follow from it."""
        following: List[Order] = []
        for order in orders:
            if isinstance(order, Stop):
                following += self.at(now, Exited(order.task, order.attempt, -15, "killed by SIGTERM"))
            elif isinstance(order, Start):
                self.at(now, started(order.task, order.attempt), advanced(order.task, attempt=order.attempt))
        return following

    def lose(self, now: float, *hosts: str) -> List[Order]:
        """Hosts are lost and the rest obeys; returns the orders that start the next formation, which then runs."""
        starts = self.obey(now, self.at(now, *(Lost(host, 13.0) for host in hosts)))
        self.obey(now, starts)
        return starts

    def phase(self) -> Phase:
        """The run's phase now; a call, so that mypy does not remember an earlier one."""
        return self.run.state.phase

    def formation(self) -> Dict[str, Any]:
        told: Dict[str, Any] = self.status()["formation"]
        return told


@pytest.fixture
def run() -> Elastic:
    """Two ps and three workers on four hosts, all up; two workers suffice."""
    replay = Elastic()
    replay.up()
    return replay


def places(orders: List[Order]) -> Dict[str, Any]:
    """{task: (attempt, index)} of those that start."""
    return {order.task: (order.attempt, order.index) for order in orders if isinstance(order, Start)}


def cluster(orders: List[Order]) -> Dict[str, List[str]]:
    """The one cluster that all who start are told of."""
    texts = {order.cluster for order in orders if isinstance(order, Start)}
    assert len(texts) == 1
    told: Dict[str, List[str]] = json.loads(texts.pop() or "null")
    return told


# -- a host is lost


def test_every_process_of_the_formation_ends_before_one_of_the_next_begins(run: Elastic) -> None:
    stops = run.at(100, Lost("c", 13.0))
    assert stops == [Stop(name, END_S, 0) for name in ("ps:0", "ps:1", "worker:0", "worker:2")]
    assert run.phase() is Phase.REFORMING and run.run.state.label == "running"
    assert run.obey(100, stops[:3]) == [] and run.at(200) == []
    starts = run.obey(201, stops[3:])
    assert places(starts) == {"ps:0": (1, 0), "ps:1": (1, 1), "worker:0": (1, 0), "worker:2": (1, 1)}
    assert cluster(starts) == {"worker": ["a:2222", "d:2222"], "ps": ["a:2222", "b:2222"]}
    assert run.phase() is Phase.TRAINING


def test_the_tasks_of_a_lost_host_say_why_they_are_out(run: Elastic) -> None:
    run.lose(100, "c")
    assert run.states()["worker:1"] == "lost"
    assert "c: no message for 13 s" in (run.run.tasks["worker:1"].cause or "")
    assert run.formation() == {
        "number": 1, "workers": 2, "of_workers": 3, "ps": 2, "of_ps": 2, "without": ["c"], "forming": False,
        "drained": [], "added": [], "changing": False, "problem": None,
    }  # fmt: skip


def test_what_was_done_is_told_with_the_incident(run: Elastic) -> None:
    run.lose(100, "c")
    incident = run.status()["incidents"][0]
    assert (incident["kind"], incident["host"]) == ("host", "c")
    assert incident["did"][-1]["what"] == "continues without c: formation 1: 2 of 3 workers, 2 of 2 ps"


def test_an_incident_of_a_task_whose_host_is_then_lost_is_over_with_the_next_step_and_has_the_lost_steps(
    run: Elastic,
) -> None:
    """The host's reports no longer arrive when the ps serves again: found by a simulated history."""
    run.at(50, advanced("worker:0", step=100, examples=100))
    run.at(60, failed("ps:1"))
    run.at(61)
    run.at(61, started("ps:1", 1))
    run.at(70, advanced("worker:0", step=77, examples=177, checkpoint_step=75))
    assert run.status()["lost_steps"] == 25
    run.lose(100, "b")
    run.at(110, advanced("worker:0", attempt=1, step=101, examples=1))
    of_task, of_host = run.status()["incidents"]
    assert (of_task["kind"], of_task["lost_steps"], of_task["open"]) == ("exit", 25, False)
    assert (of_host["kind"], of_host["lost_steps"], of_host["open"]) == ("host", 0, False)


def test_a_lost_ps_moves_to_a_spare_or_to_the_ps_that_are_left() -> None:
    run = Elastic(*FOUR, "ps:2@e+")
    run.up()
    assert run.states()["ps:2"] == "stopped" and "spare" in (run.run.tasks["ps:2"].cause or "")
    starts = run.lose(100, "b")
    assert places(starts)["ps:2"] == (0, 1) and cluster(starts)["ps"] == ["a:2222", "e:2222"]
    starts = run.lose(200, "e")
    assert cluster(starts)["ps"] == ["a:2222"]
    assert run.formation()["ps"] == 1 and run.formation()["without"] == ["b", "e"]


def test_several_hosts_lost_at_once_make_one_formation(run: Elastic) -> None:
    starts = run.lose(100, "b", "d")
    assert cluster(starts) == {"worker": ["a:2222", "c:2222"], "ps": ["a:2222"]}
    assert run.formation()["number"] == 1


def test_a_host_lost_while_the_run_is_formed_anew_is_left_out_too_and_not_waited_for(run: Elastic) -> None:
    stops = run.at(100, Lost("b", 13.0))
    assert run.obey(100, [stop for stop in stops if stop.task != "worker:1"]) == []  # type: ignore[union-attr]
    assert cluster(run.at(110, Lost("c", 13.0))) == {"worker": ["a:2222", "d:2222"], "ps": ["a:2222"]}


def test_a_host_lost_while_the_next_formation_starts_ends_that_one_too(run: Elastic) -> None:
    starts = run.obey(100, run.at(100, Lost("b", 13.0)))
    assert len(starts) == 4
    stops = run.at(101, Lost("c", 13.0))
    assert [(stop.task, stop.attempt) for stop in stops] == [("ps:0", 1), ("worker:0", 1), ("worker:2", 1)]  # type: ignore[union-attr]
    assert places(run.obey(102, stops)) == {"ps:0": (2, 0), "worker:0": (2, 0), "worker:2": (2, 1)}


def test_with_too_few_workers_left_the_run_fails_with_what_came_first(run: Elastic) -> None:
    stops = run.at(100, Lost("d", 13.0))
    assert run.at(101, Lost("c", 14.0)) == []
    ends = run.obey(102, stops)
    assert ends == [End("failed")]
    assert run.run.state.cause == (
        "d: no message for 13 s (host down, network cut, or its agent ended); "
        "expected at least 2 workers (elastic.min_workers), found 1 of 3"
    )


def test_a_loss_after_the_run_has_trained_again_is_a_cause_of_its_own(run: Elastic) -> None:
    run.lose(100, "d")
    run.at(101)
    run.lose(200, "c")
    assert run.run.state.result == "failed" and (run.run.state.cause or "").startswith("c: no message")


def test_without_a_ps_the_run_fails() -> None:
    run = Elastic("ps:0@b", "worker:0@a", "worker:1@c", min_workers=1)
    run.up()
    run.lose(100, "b")
    assert "none of 1 ps is left, and no spare ps" in (run.run.state.cause or "")


def test_a_run_that_is_not_elastic_ends_with_the_cause() -> None:
    run = Replay()
    run.up()
    run.at(100, Lost("b", 13.0))
    assert run.run.state.phase is Phase.CLOSING and run.run.state.result == "failed"
    assert run.status()["formation"] is None


def test_what_ends_while_the_run_is_formed_anew_does_not_count_as_a_failure(run: Elastic) -> None:
    stops = run.at(100, Lost("c", 13.0))
    run.at(100, failed("worker:0"), failed("worker:2"))
    run.obey(101, stops)
    assert [run.run.tasks[name].failures for name in ("worker:0", "worker:2")] == [0, 0]


def test_a_task_that_waited_for_its_restart_starts_with_the_formation(run: Elastic) -> None:
    run.at(99, failed("worker:2"))
    assert "worker:2" in places(run.lose(100, "c"))
    assert run.at(200) == []


def test_a_chief_that_has_succeeded_meanwhile_ends_the_run_in_success(run: Elastic) -> None:
    run.at(100, Lost("c", 13.0))
    run.at(100, succeeded("worker:0"))
    assert run.run.state.result == "succeeded"


def test_a_lost_host_does_not_hinder_a_run_that_closes(run: Elastic) -> None:
    run.at(100, succeeded("worker:0"), succeeded("worker:1"), succeeded("worker:2"), succeeded("ps:0"))
    assert run.at(101, Lost("b", 13.0)) == [End("succeeded")]


def test_a_run_can_be_killed_while_it_is_formed_anew(run: Elastic) -> None:
    stops = run.at(100, Lost("c", 13.0))
    killed = run.at(101, KillRequested("second SIGINT"))
    assert Stop("worker:0", 0.0, 0) in killed
    assert run.obey(102, stops)[-1:] == [End("stopped")]


def test_a_restart_that_is_asked_for_meanwhile_is_what_happens_anyway(run: Elastic) -> None:
    run.at(100, Lost("c", 13.0))
    assert run.at(101, RestartRequested(["worker:0"])) == []


def test_an_evaluator_s_host_comes_and_goes_and_training_takes_no_notice() -> None:
    run = Elastic(*FOUR, "evaluator:0@e")
    run.up()
    assert run.at(100, Lost("e", 13.0)) == []
    assert run.states()["evaluator:0"] == "lost" and run.formation()["number"] == 0
    run.at(101, Joined("e"))
    assert [order.task for order in run.at(101 + SETTLE_S + REST_S)] == ["evaluator:0"]  # type: ignore[union-attr]
    assert run.formation()["without"] == []


def test_a_spare_s_host_that_is_lost_is_told_and_no_more() -> None:
    run = Elastic(*FOUR, "ps:2@e+")
    run.up()
    assert run.at(100, Lost("e", 13.0)) == []
    assert run.states()["ps:2"] == "lost"
    assert cluster(run.lose(200, "b"))["ps"] == ["a:2222"]


# -- at the start


def test_a_run_begins_without_hosts_that_are_lost_before_or_do_not_join() -> None:
    run = Elastic(join_s=20.0, min_workers=1)
    assert run.at(0, Joined("a"), Joined("b"), Joined("c"), Lost("b", 13.0)) == []
    assert run.states()["ps:1"] == "lost"
    assert run.at(10, Go()) == [] and run.at(30) == []
    starts = run.at(30.1)
    assert places(starts) == {"ps:0": (0, 0), "worker:0": (0, 0), "worker:1": (0, 1)}
    assert cluster(starts) == {"worker": ["a:2222", "c:2222"], "ps": ["a:2222"]}
    assert run.formation()["without"] == ["b", "d"]


def test_a_run_that_cannot_begin_names_the_host_that_did_not_join() -> None:
    run = Elastic(join_s=20.0, min_workers=3, control="a:2300")
    run.at(0, Joined("a"), Joined("b"), Joined("c"), Go())
    assert run.at(20.1) == [End("failed")]
    assert (run.run.state.cause or "").startswith("d: its agent has not reached the lead agent at a:2300 within 20 s")


# -- a host comes back


def test_a_run_of_which_fewer_hosts_come_back_than_a_quorum_does_not_begin() -> None:
    for joined, cause in ((3, None), (2, "2 of 4 hosts came back within 60 s, 3 are needed")):
        run = Elastic(join_s=60.0, min_workers=1, quorum=3)
        run.at(0.0, *(Joined(host) for host in run.run.plan.hosts[:joined]), Go())
        orders = run.at(60.1)
        assert run.run.state.cause == cause and bool([each for each in orders if isinstance(each, Start)]) is (
            not cause
        )


def test_a_host_that_comes_back_is_taken_back_when_the_run_has_trained_for_a_while(run: Elastic) -> None:
    run.lose(100, "c")
    assert run.at(102, Joined("c")) == [] and run.at(100 + REST_S - 0.1) == []
    assert "waits to join" in (run.run.tasks["worker:1"].cause or "")
    starts = run.obey(117, run.at(100 + REST_S))
    assert places(starts)["worker:1"] == (1, 1) and places(starts)["worker:2"] == (2, 2)
    assert cluster(starts)["worker"] == ["a:2222", "c:2222", "d:2222"]
    run.obey(118, starts)
    assert run.formation()["without"] == [] and set(run.states().values()) == {"running"}
    assert run.status()["incidents"][0]["did"][-1]["what"] == "c joined again"


def test_a_host_that_is_back_before_the_others_have_ended_is_taken_along(run: Elastic) -> None:
    stops = run.at(100, Lost("c", 13.0))
    run.at(101, Joined("c"))
    assert "worker:1" in places(run.obey(101 + SETTLE_S, stops))


def test_a_host_that_keeps_going_is_taken_back_with_growing_patience(run: Elastic) -> None:
    now = 0.0
    for patience_s in (SETTLE_S, PATIENCE_S, 2 * PATIENCE_S):
        now += 1000
        run.lose(now, "c")
        run.at(now + REST_S, Joined("c"))
        back = now + REST_S + max(patience_s, SETTLE_S)
        assert run.at(back - 0.1) == [], patience_s
        run.obey(back + 1, run.obey(back, run.at(back)))
        assert run.states()["worker:1"] == "running"


def test_a_host_that_is_lost_again_while_it_waits_is_not_taken_back(run: Elastic) -> None:
    run.lose(100, "c")
    run.at(102, Joined("c"))
    assert run.at(103, Lost("c", 13.0)) == []
    assert run.at(1000) == [] and run.states()["worker:1"] == "lost"


def test_a_spare_goes_back_to_waiting_when_the_ps_s_own_host_returns() -> None:
    run = Elastic(*FOUR, "ps:2@e+")
    run.up()
    run.lose(100, "b")
    run.at(101, Joined("b"))
    starts = run.obey(200, run.at(200))
    assert cluster(starts)["ps"] == ["a:2222", "b:2222"]
    assert run.states()["ps:2"] == "stopped"


def test_a_formation_that_is_not_up_yet_is_not_ended_to_take_a_host_back(run: Elastic) -> None:
    starts = run.obey(100, run.at(100, Lost("c", 13.0)))
    run.at(101, Joined("c"))
    assert run.at(1000) == []
    run.obey(1000, starts)
    assert run.at(1001 + REST_S) != []


def test_the_chief_saves_before_a_host_is_taken_back(run: Elastic) -> None:
    run.lose(100, "c")
    run.at(101, Joined("c"), advanced("worker:0", 50, 1, save_begun=0, save_done=0))
    now = 100 + REST_S
    assert run.at(now) == [Save("worker:0", 1, 1, HOLD)]
    assert run.at(now + 1, advanced("worker:0", 60, 1, save_begun=1, save_done=0)) == []
    stops = run.at(now + 2, advanced("worker:0", 61, 1, save_begun=1, save_done=1))
    assert "worker:1" in places(run.obey(now + 3, stops))


def test_what_the_return_of_a_host_costs_is_in_its_incident_and_no_later_loss_is(run: Elastic) -> None:
    def lost() -> List[Any]:
        return [run.status()["lost_steps"], *(each["lost_steps"] for each in run.status()["incidents"])]

    run.lose(100, "c")
    run.at(101, advanced("worker:0", 50, 1, 1))
    run.at(102, Joined("c"))
    run.at(103, advanced("worker:0", 61, 1, 2))
    assert lost() == [0, 0]
    starts = run.obey(117, run.at(100 + REST_S))
    run.obey(119, starts)
    run.at(120, advanced("worker:0", 41, 2, 3, checkpoint_step=40))
    assert lost() == [21, 21]
    run.at(121, advanced("worker:0", 80, 2, 4, checkpoint_step=40))
    run.at(122, advanced("worker:0", 76, 2, 5, checkpoint_step=75))
    assert lost() == [26, 21]


def test_a_host_lost_while_the_chief_saves_is_not_waited_for(run: Elastic) -> None:
    run.lose(100, "c")
    run.at(101, Joined("c"), advanced("worker:0", 50, 1, save_begun=0, save_done=0))
    assert run.at(100 + REST_S) == [Save("worker:0", 1, 1, HOLD)]
    stops = run.at(101 + REST_S, Lost("d", 13.0))
    assert places(run.obey(102 + REST_S, stops)).keys() == {"ps:0", "ps:1", "worker:0", "worker:1"}


def test_every_host_lost_since_the_run_last_trained_is_told_with_what_was_done(run: Elastic) -> None:
    run.lose(100, "b", "d")
    told = [each["did"][-1]["what"] for each in run.status()["incidents"]]
    assert told == ["continues without b, d: formation 1: 2 of 3 workers, 1 of 2 ps"] * 2


def test_a_cause_names_tasks_as_the_run_does(run: Elastic) -> None:
    run.lose(100, "c")
    run.at(101, Exited("worker:0", 1, 1, "waited for worker:1"))
    assert run.run.tasks["worker:0"].cause == "waited for worker:2"


def test_while_the_run_is_formed_anew_its_newest_step_is_still_told_and_no_rate(run: Elastic) -> None:
    for now in (90, 91, 92):
        run.at(now, *(advanced(f"worker:{index}", now, examples=8 * now) for index in range(3)))
    run.obey(100, run.at(100, Lost("c", 13.0)))
    told = run.status()
    assert (told["global_step"], told["steps_per_second"], told["examples_per_second"]) == (92, 0.0, 0.0)
