"""Which run follows one whose chief's host was lost."""

import time
from pathlib import Path
from typing import Any, Callable, List, Optional, Tuple

import pytest

from cluster.protocol.settings import Elastic
from cluster.spec.model import Spec, TaskSpec
from cluster.task import Checkpoint, Train
from launch.errors import CannotStart, HostProblem, ProblemKind
from launch.hosts.bundle import JobCode
from launch.plan.local_spec import localised
from launch.plan.plan import make_plan
from launch.run import lifecycle
from launch.run.draft import RunStart
from launch.run.lifecycle import Ended, await_lease, train_with_failover, without
from launch.signals import Interrupts
from launch.target import Target
from launch.teardown import STOP_S
from tests.support.launch.statuses import status

TASKS = ("ps:0@h1", "ps:1@h2", "ps:2@h4*", "worker:0@h1", "worker:1@h2", "worker:2@h3", "evaluator:0@h3")


def spec_of(
    tasks: Any = TASKS, min_workers: Optional[int] = 1, replicas: int = 1, folder: Optional[str] = None
) -> Spec:
    """``ps:2@h4*``: a spare."""
    specs = []
    for text in tasks:
        name, host = text.rstrip("*").split("@")
        role, index = name.split(":")
        specs.append(TaskSpec(role, int(index), host, f"{host}:2222", 2222, spare=text.endswith("*")))
    elastic = None if min_workers is None else Elastic(min_workers)
    train = Train(checkpoint=Checkpoint(dir=folder, replicas=replicas))
    return Spec(Path("r.yaml"), "r", tuple(specs), job="digits", elastic=elastic, train=train)


def names(spec: Optional[Spec]) -> List[str]:
    assert spec is not None
    return [f"{task.name}@{task.host}{'*' if task.spare else ''}" for task in spec.tasks]


def test_the_chief_moves_to_the_first_worker_that_is_left_and_a_spare_takes_the_place_of_a_ps() -> None:
    follows = without(spec_of(), {"h1"})
    assert names(follows) == ["ps:0@h2", "ps:1@h4", "worker:0@h2", "worker:1@h3", "evaluator:0@h3"]
    assert follows is not None and follows.chief.host == "h2"


def test_a_spare_that_is_not_needed_stays_one() -> None:
    tasks = ("ps:0@h2", "ps:1@h4*", "worker:0@h1", "worker:1@h2")
    assert names(without(spec_of(tasks), {"h1"})) == ["ps:0@h2", "ps:1@h4*", "worker:0@h2"]


def test_with_local_the_successor_leads_at_a_port_of_its_own() -> None:
    here = localised(spec_of(), range(11, 18), range(21, 25))
    follows = without(here, {"h1"})
    assert follows is not None and follows.is_here("h2") and follows.lead_ports["h1"] != follows.lead_ports["h2"]
    plan = make_plan(follows, JobCode(None, "digits"), "r-1", "python")
    assert (plan.lead, plan.control) == ("h2", f"localhost:{follows.lead_ports['h2']}")


def test_every_host_that_is_lost_is_left_out() -> None:
    assert names(without(spec_of(), {"h1", "h3"})) == ["ps:0@h2", "ps:1@h4", "worker:0@h2"]


def test_a_chief_of_its_own_is_followed_by_a_worker() -> None:
    tasks = ("ps:0@h2", "chief:0@h1", "worker:0@h2")
    follows = without(spec_of(tasks), {"h1"})
    assert follows is not None and follows.chief.name == "worker:0"


@pytest.mark.parametrize(
    ("spec", "lost"),
    [
        (spec_of(min_workers=None), {"h1"}),
        (spec_of(replicas=0), {"h1"}),
        (spec_of(min_workers=3), {"h1"}),
        (spec_of(("ps:0@h1", "worker:0@h1", "worker:1@h2")), {"h1"}),
    ],
    ids=["it is not elastic", "it has no copies", "too few workers are left", "no ps is left"],
)
def test_nothing_follows_where(spec: Spec, lost: Any) -> None:
    assert without(spec, lost) is None


@pytest.mark.parametrize(("folder", "seconds"), [(None, 12.0), ("/shared", 12.0 + STOP_S)])
def test_it_begins_when_the_lost_lead_has_surely_no_lease(
    folder: Optional[str], seconds: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    waited: List[float] = []
    interrupts = Interrupts()
    monkeypatch.setattr(interrupts, "wait", waited.append)
    monkeypatch.setattr(time, "monotonic", lambda: 1010.0)
    await_lease(spec_of(folder=folder), 1000.0, interrupts)
    assert waited == [pytest.approx(seconds)]


Trained = Callable[..., Tuple[List[RunStart], Ended]]


@pytest.fixture
def trained(monkeypatch: pytest.MonkeyPatch) -> Trained:
    """The starts of runs of which each loses its chief's host, last seen at these times, and h3; and the last end."""

    def found(interrupts: Interrupts, *lost_at: Optional[float]) -> Tuple[List[RunStart], Ended]:
        starts: List[RunStart] = []

        def train(target: Target, start: RunStart, *_: object) -> Ended:
            starts.append(start)
            return Ended(len(starts), status(), lost_at[len(starts) - 1], ["h3"])

        monkeypatch.setattr(lifecycle, "train", train)
        return starts, train_with_failover(Target("r.yaml"), RunStart(spec_of()), interrupts, lambda status: [])

    return found


def test_a_run_whose_chiefs_host_is_lost_is_followed_by_one_on_the_others(
    trained: Trained, capsys: pytest.CaptureFixture[str]
) -> None:
    (first, second), ended = trained(Interrupts(), time.monotonic() - 1000, None)
    assert (first.spec.chief.host, first.resume) == ("h1", False)
    assert (second.spec.hosts, second.resume, second.needed) == (("h2", "h4"), True, False)
    assert ended.code == 2
    expected = "continuing without h[1,3], from the newest copy of the checkpoints, with the chief on h2\n"
    assert capsys.readouterr().out == expected


@pytest.mark.parametrize(("kind", "ends"), [(ProblemKind.ENDED, True), (ProblemKind.REFUSED, False)])
def test_where_a_user_has_ended_the_run_its_end_is_the_last(
    kind: ProblemKind, ends: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def train(target: Target, start: RunStart, *_: object) -> Ended:
        if start.follows is not None:
            raise CannotStart([HostProblem("h2", kind, f"{start.follows} was ended here")], "look for obstacles")
        return Ended(1, status(), time.monotonic() - 1000, ["h3"])

    monkeypatch.setattr(lifecycle, "train", train)

    def trains() -> Ended:
        return train_with_failover(Target("r.yaml"), RunStart(spec_of()), Interrupts(), lambda status: [])

    if ends:
        assert trains().code == 1
        assert capsys.readouterr().out.splitlines()[-1] == "h2: r-1 was ended here"
    else:
        with pytest.raises(CannotStart):
            trains()


def test_a_run_that_ended_otherwise_or_was_to_be_stopped_is_the_last(trained: Trained) -> None:
    starts, ended = trained(Interrupts(), None)
    assert (len(starts), ended.code) == (1, 1)
    stopped = Interrupts()
    stopped.received.append(2)
    assert len(trained(stopped, time.monotonic() - 1000)[0]) == 1


def test_a_successor_may_have_one_of_its_own_until_too_few_hosts_are_left(trained: Trained) -> None:
    long_ago = time.monotonic() - 1000
    starts, ended = trained(Interrupts(), long_ago, long_ago)
    assert ([start.spec.chief.host for start in starts], ended.code) == (["h1", "h2"], 2)
