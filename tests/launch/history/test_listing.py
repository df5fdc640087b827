"""Of each run that several hosts remember there is one record: the lead's where its host answered."""

from typing import Optional

from launch.errors import HostProblem, ProblemKind
from launch.history import Listing, as_values, merged
from launch.status.run import KnownRun, RunRecord, RunsAnswer

FIRST, SECOND, OTHER = "a-20261122-230000", "a-20261122-110000", "b-20200101-000000"


def known(run: str, generation: int, lead: Optional[str], state: Optional[str] = None) -> KnownRun:
    return KnownRun(generation, False, RunRecord(run, run[0], lead=lead, state=state))


def test_runs_are_in_the_order_of_their_generations_whatever_their_names_are() -> None:
    answer = RunsAnswer([known(FIRST, 1, "h"), known(SECOND, 2, "h"), known(OTHER, 3, "h")])
    assert [each.run for each in merged({"h": answer})] == [OTHER, SECOND, FIRST]


def test_the_record_of_a_run_is_its_leads_whichever_host_is_asked_first() -> None:
    lead, member = RunsAnswer([known(FIRST, 1, "h", "failed")]), RunsAnswer([known(FIRST, 1, "h")])
    for answers in ({"h": lead, "i": member}, {"i": member, "h": lead}):
        assert [each.state for each in merged(answers)] == ["failed"]


def test_without_the_lead_a_member_names_it_and_a_host_with_copies_alone_does_not() -> None:
    copies, member = RunsAnswer([known(FIRST, 1, None)]), RunsAnswer([known(FIRST, 1, "h")])
    for answers in ({"j": copies, "i": member}, {"i": member, "j": copies}):
        assert [(each.lead, each.state) for each in merged(answers)] == [("h", None)]


def test_every_host_that_was_asked_is_in_the_json_with_what_kept_it_from_an_answer() -> None:
    problems = [HostProblem("b", ProblemKind.UNREACHABLE, "is off"), HostProblem("gate", ProblemKind.GATEWAY, "no way")]
    values = as_values(Listing([], problems), ["a", "b"])
    assert values["hosts"] == [
        {"host": "a", "error": None}, {"host": "b", "error": "is off"}, {"host": "gate", "error": "no way"},
    ]  # fmt: skip
