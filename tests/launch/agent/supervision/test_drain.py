"""Tasks are drained, and train again: replayed with a clock of numbers."""

import json
from typing import Any, Dict, List, Optional, Set, Tuple

import pytest

from cluster.protocol.save_request import HOLD
from cluster.protocol.typed_json import from_values
from launch.agent.protocol.messages import (
    PREPARE_S,
    Dismiss,
    DrainRequested,
    Lost,
    Order,
    Prepare,
    Prepared,
    Save,
    Start,
    Stop,
    StopRequested,
)
from launch.agent.supervision.elastic import END_S
from launch.agent.supervision.handover import TRAIN_S
from launch.agent.supervision.run_state import Phase
from launch.agent.supervision.saving import SAVE_S
from launch.agent.supervision.supervisor import Supervisor
from launch.agent.supervision.task_records import DRAINED, SPARE
from launch.status.run import FormationStatus
from tests.support.agent.histories import Replay, advanced, failed, run_plan, started

TASKS = ("ps:0@a", "ps:1@b", "ps:2@c+", "worker:0@a", "worker:1@d", "evaluator:0@a")


class Draining(Replay):
    """A run of two ps, a spare, two workers and an evaluator, of which the chief can save."""

    def __init__(self, *tasks: str, **options: Any):
        super().__init__(*(tasks or TASKS), **{"min_workers": 1, **options})
        self.up()
        self.at(1, advanced("worker:0", 5, save_begun=0, save_done=0))

    def drain(self, now: float, *tasks: str, back: bool = False) -> List[Order]:
        return self.at(now, DrainRequested(list(tasks), back))

    def refusals(self, *tasks: str, back: bool = False) -> List[str]:
        return self.run.formations.refusals(DrainRequested(list(tasks), back))

    def prepare(self, now: float, orders: List[Order]) -> List[Order]:
        return self.at(now, *(Prepared(each.task, each.attempt) for each in orders if isinstance(each, Prepare)))

    def saved(self, now: float, number: int = 1, step: int = 7, checkpoint: int = 7, attempt: int = 0) -> List[Order]:
        """The chief reports that it has saved."""
        report = {"save_begun": number, "save_done": number, "checkpoint_step": checkpoint}
        return self.at(now, advanced("worker:0", step, attempt, **report))

    def gone(self, now: float, orders: List[Order]) -> List[Order]:
        """What was ordered to end has ended; returns what starts then, and runs from now on."""
        following: List[Order] = []
        for order in orders:
            if isinstance(order, Stop):
                following += self.at(now, failed(order.task, order.attempt, code=-15))
        for order in following:
            if isinstance(order, Start):
                self.at(now, started(order.task, order.attempt), advanced(order.task, 7, order.attempt))
        return following

    def change(self, now: float, *tasks: str, number: int = 1, back: bool = False) -> List[Order]:
        """Tasks go, or come back; returns the orders that start the next formation."""
        attempt = self.run.tasks["worker:0"].attempt
        self.at(now, advanced("worker:0", 6, attempt, save_begun=0, save_done=0))
        (save,) = self.prepare(now, self.drain(now, *tasks, back=back))
        assert isinstance(save, Save)
        return self.gone(now, self.saved(now, save.number, attempt=attempt))

    def formation(self) -> Dict[str, Any]:
        found: Dict[str, Any] = self.status()["formation"]
        return found


@pytest.fixture
def run() -> Draining:
    """The run, all up."""
    return Draining()


def cluster(orders: List[Order]) -> Dict[str, List[str]]:
    """The one cluster of all that start, or are prepared."""
    (text,) = {order.cluster for order in orders if isinstance(order, (Start, Prepare))}
    found: Dict[str, List[str]] = json.loads(text or "null")
    return found


def places(orders: List[Order]) -> Set[Tuple[str, int, Optional[int]]]:
    """(task, attempt, index) of all that start, or are prepared."""
    return {(each.task, each.attempt, each.index) for each in orders if isinstance(each, (Start, Prepare))}


def test_processes_load_beside_those_that_train_then_the_chief_saves_and_holds_then_all_end(run: Draining) -> None:
    prepared = run.drain(10, "ps:1", "ps:2")
    assert cluster(prepared) == {"ps": ["a:2222"], "worker": ["a:2222", "d:2222"]}
    assert places(prepared) == {("ps:0", 1, 0), ("worker:0", 1, 0), ("worker:1", 1, 1), ("evaluator:0", 1, 0)}
    assert run.prepare(20, prepared[:-1]) == [] and run.formation()["changing"]
    assert run.prepare(21, prepared[-1:]) == [Save("worker:0", 0, 1, HOLD)]
    assert run.at(22) == [] and run.run.state.phase is Phase.TRAINING
    stops = run.saved(23)
    everybody = ("ps:0", "ps:1", "worker:0", "worker:1", "evaluator:0")
    assert sorted(map(str, stops)) == sorted(str(Stop(name, END_S, 0)) for name in everybody)
    starts = run.gone(24, stops)
    assert places(starts) == places(prepared)
    assert cluster(starts) == cluster(prepared)
    assert run.formation() == {
        "number": 1, "workers": 2, "of_workers": 2, "ps": 1, "of_ps": 2, "without": [], "forming": False,
        "drained": ["ps:1", "ps:2"], "added": [], "changing": False, "problem": None,
    }  # fmt: skip
    assert (run.states()["ps:1"], run.run.tasks["ps:1"].cause) == ("stopped", DRAINED)


def test_a_spare_takes_the_place_of_a_drained_ps_and_waits_again_when_that_is_back(run: Draining) -> None:
    assert cluster(run.change(10, "ps:1")) == {"ps": ["a:2222", "c:2222"], "worker": ["a:2222", "d:2222"]}
    assert cluster(run.change(20, "ps:1", number=2, back=True))["ps"] == ["a:2222", "b:2222"]
    assert run.run.tasks["ps:2"].cause == SPARE and run.formation()["drained"] == []


def test_the_step_of_a_drained_worker_is_its_own_while_others_start(run: Draining) -> None:
    run.at(5, advanced("worker:1", 5))
    run.change(10, "worker:1")
    run.at(20, advanced("worker:0", 90, 1, examples=720, save_begun=0, save_done=0))
    stops = run.at(30, Lost("b", 13.0))
    run.at(31, *(failed(each.task, each.attempt, code=-15) for each in stops if isinstance(each, Stop)))
    assert run.run.tasks["worker:1"].progress["step"] == 5 and run.states()["worker:0"] == "starting"
    assert run.status()["global_step"] == 90


def test_a_spare_that_is_let_in_trains_beside_all_others(run: Draining) -> None:
    assert cluster(run.change(10, "ps:2", back=True))["ps"] == ["a:2222", "b:2222", "c:2222"]
    assert (run.formation()["ps"], run.formation()["of_ps"], run.formation()["added"]) == (3, 3, ["ps:2"])


def test_a_loss_meanwhile_forms_what_was_wished_without_the_host(run: Draining) -> None:
    run.drain(10, "ps:1")
    stops = run.at(11, Lost("d", 13.0))
    assert cluster(run.gone(12, stops)) == {"ps": ["a:2222", "c:2222"], "worker": ["a:2222"]}
    assert run.formation()["drained"] == ["ps:1"] and not run.formation()["changing"]


def test_a_loss_of_what_is_drained_disturbs_nobody(run: Draining) -> None:
    run.change(10, "worker:1")
    assert run.at(20, Lost("d", 13.0)) == [] and run.run.state.phase is Phase.TRAINING


def test_a_chief_that_could_not_save_trains_on_and_what_waits_is_ended(run: Draining) -> None:
    prepared = run.drain(10, "ps:1")
    run.prepare(11, prepared)
    ended = run.saved(12, step=9, checkpoint=5)
    assert ended == [Dismiss(each.task, 1) for each in prepared]  # type: ignore[union-attr]
    assert run.formation()["problem"] == "the chief could not save" and run.formation()["drained"] == []
    assert run.run.state.phase is Phase.TRAINING and run.formation()["number"] == 0
    assert run.refusals("ps:1") == []


def test_every_wait_of_a_change_ends(run: Draining) -> None:
    run.drain(10, "ps:1")
    assert run.at(10 + PREPARE_S - 1) == []
    (save,) = run.at(10 + PREPARE_S)  # nobody has reported that it waits
    assert isinstance(save, Save)
    run.at(10 + PREPARE_S + SAVE_S + 1)
    assert run.formation()["problem"] == "the chief could not save"
    run.drain(110, "ps:1")
    run.at(111, failed("worker:0"))
    run.at(110 + PREPARE_S + TRAIN_S)
    assert run.formation()["problem"] == "the chief does not train"


def test_a_run_that_is_stopped_meanwhile_ends(run: Draining) -> None:
    run.drain(10, "ps:1")
    run.at(11, StopRequested("enough"))
    assert run.run.state.phase is Phase.CLOSING


@pytest.mark.parametrize(
    ("tasks", "back", "reason"),
    [
        (["worker:0"], False, "worker:0 is the chief, which leads the run; choose other tasks"),
        (["evaluator:0"], False, "evaluator:0: expected a ps or a worker"),
        (
            ["ps:0", "ps:1", "ps:2"],
            False,
            "refused, because the run could not train after this change: none of 2 ps is left, and no spare ps",
        ),
        (["ps:1"], True, "ps:1 trains already"),
    ],
)
def test_what_cannot_be_drained_is_refused(run: Draining, tasks: List[str], back: bool, reason: str) -> None:
    assert run.refusals(*tasks, back=back) == [reason]
    assert run.drain(10, *tasks, back=back) == []


def test_too_few_workers_an_inelastic_run_and_one_that_does_not_train_are_refused(run: Draining) -> None:
    assert Draining(min_workers=2).refusals("worker:1") == [
        "refused, because the run could not train after this change: "
        "expected at least 2 workers (elastic.min_workers), found 1 of 2"
    ]
    inelastic = Draining("ps:0@a", "worker:0@a", min_workers=None)
    assert inelastic.refusals("ps:0")[0].startswith("expected a run with the key elastic")
    run.drain(10, "ps:1")
    busy = "the run is still starting, or is changing its tasks; try again once it trains"
    assert run.refusals("ps:0") == [busy]


def test_a_lead_that_is_started_again_leaves_out_what_was_drained(run: Draining) -> None:
    run.change(10, "ps:1", "ps:2")
    again = Supervisor(run_plan(TASKS, min_workers=1))
    again.formations.wishes.restore(from_values(FormationStatus, run.formation()))
    replay = Replay(*TASKS, min_workers=1)
    replay.run = again
    assert cluster(replay.begin())["ps"] == ["a:2222"]
