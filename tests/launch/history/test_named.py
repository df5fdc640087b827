"""``--run`` means the run of that name and no other; a name that no run has is refused with those that are near."""

from typing import Any, List, Optional

import pytest

from cluster.protocol.typed_json import to_values
from launch.errors import CannotStart, UsageError
from launch.fleet import Fleet
from launch.history import find_named, locate, nearest, newest_status
from launch.status.run import KnownRun, RunRecord, RunsAnswer, RunStatus
from launch.status.task import TaskStatus
from launch.teardown import look_and_take_down
from tests.launch.history.test_newest import host
from tests.support.launch.fakes import FakeHost, fleet_of

OLD, NEW, OTHER = "r-20261119-120000", "r-20261120-120000", "wide-20261120-120000"
TASK = TaskStatus(role="worker", index=7, host="h2")


def remembers(*each: KnownRun) -> Any:
    return to_values(RunsAnswer(list(each)))


def known(run: str, lead: Optional[str], lives: bool = False) -> KnownRun:
    return KnownRun(1, lives, RunRecord(run, "r", lead=lead))


def status_of(run: str) -> Any:
    return {
        "run": run, "generation": 1, "lives": False, "lead": "h2",
        "status": to_values(RunStatus(run, state="failed", tasks=[TASK])),
    }  # fmt: skip


def fleet(run: str, *hosts: FakeHost) -> Fleet:
    made = fleet_of({each.name: each for each in hosts})
    made.run = run
    return made


def test_the_run_is_found_though_a_newer_one_lives_and_its_tasks_are_the_fleets_from_then_on() -> None:
    both = [known(NEW, "h1", lives=True), known(OLD, "h2")]
    hosts = fleet(OLD, host("h1", remembers(*both)), host("h2", remembers(*both), status_of(OLD)))
    located = locate(hosts)
    assert located.status is not None and located.status.run == OLD and located.missed == []
    assert (hosts.lead, list(hosts.tasks)) == ("h2", [TASK])


def test_a_reference_names_the_run_and_the_name_that_it_shares_with_others() -> None:
    asked = fleet(OTHER, FakeHost("h1"))
    assert (asked.reference("h1").run, asked.reference("h1").name) == (OTHER, "wide")
    assert asked.reference("h1", NEW).run == NEW


def test_a_name_that_no_run_has_is_refused_with_the_nearest() -> None:
    hosts = fleet("r-20261119-120001", host("h1", remembers(known(NEW, "h1"), known(OLD, "h1"), known(OTHER, "h1"))))
    message = (
        r"^--run: expected a run on h1, found 'r-20261119-120001'; the nearest names: r-20261119-120000, .*; "
        r"list every run with `launch runs r.yaml`$"
    )
    with pytest.raises(UsageError, match=message):
        locate(hosts)


def test_where_there_are_no_runs_that_is_the_reason() -> None:
    with pytest.raises(UsageError, match="no run has been on these hosts"):
        locate(fleet(OLD, host("h1", remembers())))


def test_a_run_that_a_host_out_of_reach_may_know_is_not_called_unknown() -> None:
    with pytest.raises(CannotStart, match="h2: out of reach"):
        locate(fleet(OLD, host("h1", remembers(known(NEW, "h1"))), host("h2")))


def test_a_lead_out_of_reach_is_named_by_the_members() -> None:
    with pytest.raises(CannotStart, match="h2: out of reach"):
        newest_status(fleet(OLD, host("h1", remembers(known(OLD, "h2"))), host("h2")), "r.yaml")


def test_a_lead_that_the_file_does_not_name_is_asked_for() -> None:
    with pytest.raises(UsageError, match=r"r.yaml: expected gone, which leads r-20261119-120000, among its hosts"):
        locate(fleet(OLD, host("h1", remembers(known(OLD, "gone")))))


def test_a_run_whose_lead_has_no_record_is_an_error_with_the_next_step() -> None:
    there = host("h1", remembers(known(OLD, None)), {"status": None})
    with pytest.raises(UsageError, match=r"r-20261119-120000: expected its lead's record on h1, found none"):
        newest_status(fleet(OLD, there), "r.yaml")


def test_down_ends_nothing_where_no_run_has_the_name() -> None:
    there = host("h1", remembers(known(NEW, "h1", lives=True)))
    with pytest.raises(UsageError, match="--run: expected a run on h1"):
        look_and_take_down(fleet(OLD, there), "launch down")
    assert len(there.opened) == 1


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ("20261119", [OLD]),
        ("wide", [OTHER]),
        ("r-20261120-12000", [NEW]),
        ("nonsense", [OTHER, NEW, OLD]),
        ("", [OTHER, NEW, OLD]),
    ],
)
def test_near_is_what_has_the_text_in_it_else_what_is_alike_else_the_newest(given: str, found: List[str]) -> None:
    assert nearest(given, [OTHER, NEW, OLD]) == found


def test_a_host_that_only_has_copies_is_not_taken_for_the_lead() -> None:
    hosts = [host("h1", remembers(known(OLD, "h1"))), host("h2", remembers(known(OLD, None)))]
    told, _ = find_named(fleet(OLD, *hosts), OLD)
    assert {name: each["lead"] for name, each in told.items()} == {"h1": "h1"}


def test_a_run_is_described_as_the_hosts_answer_find() -> None:
    told, problems = find_named(fleet(OLD, host("h1", remembers(known(OLD, "h1", lives=True)))), OLD)
    assert told == {"h1": {"run": OLD, "generation": 1, "lives": True, "lead": "h1", "hosts": []}} and not problems
