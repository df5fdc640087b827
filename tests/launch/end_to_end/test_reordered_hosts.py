"""A hosts file that was changed while its run is up: verbs find the lead by asking, or say which host to put back."""

import sys
from dataclasses import replace
from pathlib import Path
from typing import Iterator

import pytest

from launch.diagnosis.collect import gather
from launch.diagnosis.summary import as_values as diagnosed
from launch.diagnosis.summary import text as summary
from launch.diagnosis.symptoms import Diagnosis
from launch.errors import UsageError
from launch.fleet import Fleet
from launch.history import locate, newest_status
from launch.run.attached import Attached
from launch.run.start import start_agents
from launch.teardown import Left, as_values, in_lines, look_and_take_down, refuse_part
from launch.view.plain_view import View
from tests.launch.end_to_end.test_two_hosts_here import HOSTS, RUN, Cluster
from tests.support.launch.machine import left_in, living_under

LEAD, MEMBER = HOSTS
STAY = "trap 'echo {{role}} >> {order}; exit 0' TERM; sleep 1000 & wait"


class Changed(Cluster):
    """A run that is up on two hosts, and the verbs' view of them after the file was changed."""

    def begin(self) -> None:
        with self.fleet:
            self.fleet.connect()
            start_agents(self.fleet, self.requests)
            watch = Attached(self.fleet, self.plan, self.requests, View(self.shown), detach=True)
            assert watch.go().state == "running"

    def fleet_of(self, *hosts: str) -> Fleet:
        """The hosts that the file names now: the first has the chief."""
        tasks = tuple(task for host in hosts for task in self.spec.tasks if task.host == host)
        spec = replace(self.spec, tasks=tasks)
        return Fleet(spec, dict.fromkeys(hosts, sys.executable), self.code, self.interrupts)

    def down(self, *hosts: str) -> Left:
        with self.fleet_of(*hosts) as fleet:
            return look_and_take_down(fleet, "launch down")


@pytest.fixture
def up(tmp_path: Path) -> Iterator[Changed]:
    yield from begun(tmp_path)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Changed]:
    """A run for all tests that only look at it."""
    yield from begun(tmp_path_factory.mktemp("shared"))


def begun(folder: Path) -> Iterator[Changed]:
    cluster = Changed(folder, ["sh", "-c", STAY.format(order=folder / "order")])
    cluster.begin()
    yield cluster
    assert cluster.down(*HOSTS).clean
    assert left_in(folder) == [] and not living_under(folder)


def test_the_lead_is_found_where_the_file_names_another_host_first(shared: Changed) -> None:
    with shared.fleet_of(MEMBER, LEAD) as fleet:
        status = newest_status(fleet, "r.yaml")
        refuse_part(fleet)  # which it does not
    assert (status.run, status.state, len(status.tasks)) == (RUN, "running", 4)
    assert fleet.lead == LEAD


def test_a_diagnosis_of_reordered_hosts_has_the_leads_status(shared: Changed) -> None:
    with shared.fleet_of(MEMBER, LEAD) as fleet:
        found = Diagnosis("r", gather(fleet, 60.0))
    assert "state: running" in summary(found, "now")
    assert [host["error"] for host in diagnosed(found, "a", 1)["hosts"]] == [None, None]


def test_a_diagnosis_without_the_lead_tells_what_the_other_hosts_know(shared: Changed) -> None:
    with shared.fleet_of(MEMBER) as fleet:
        found = Diagnosis("r", gather(fleet, 60.0))
    assert "no host reports the state of the run" in summary(found, "now")
    assert diagnosed(found, "a", 1)["run"] == RUN


def test_down_ends_the_run_through_its_lead_wherever_the_file_names_that(up: Changed) -> None:
    left = up.down(MEMBER, LEAD)
    assert left.clean and list(left.reports) == [LEAD, MEMBER]
    assert (up.folder / "order").read_text().split() == ["worker", "worker", "ps", "ps"]


def test_verbs_name_the_lead_that_the_file_does_not_name_any_more(shared: Changed) -> None:
    text = f"r.yaml: expected {LEAD}, which leads {RUN}, among its hosts, found {MEMBER}; add it again"
    with shared.fleet_of(MEMBER) as fleet:
        for verb in (locate, refuse_part):
            with pytest.raises(UsageError, match=text):
                verb(fleet)


def test_down_without_the_lead_of_a_run_that_lives_ends_nothing_and_is_not_clean(up: Changed) -> None:
    left = up.down(MEMBER)
    assert not left.clean and not as_values(left)["clean"]
    assert in_lines(left) == [
        f"{LEAD}: it leads {RUN}, but {up.spec.path} does not name it, so nothing was ended; "
        "add it again, then run `launch down` again"
    ]
    with up.fleet_of(*HOSTS) as fleet:
        assert {task.state for task in newest_status(fleet, "r.yaml").tasks} == {"running"}


def test_down_without_the_lead_of_a_run_that_is_over_says_that_nobody_looked_there(up: Changed) -> None:
    assert up.down(*HOSTS).clean
    left = up.down(MEMBER)
    assert not left.clean and list(left.reports) == [MEMBER]
    assert in_lines(left)[-1].startswith(
        f"{LEAD}: it leads {RUN}, but {up.spec.path} does not name it, so that host was not searched"
    )


def test_down_without_a_member_ends_the_run_and_says_that_nobody_looked_there(up: Changed) -> None:
    left = up.down(LEAD)
    assert not left.clean and list(left.reports) == [LEAD]
    assert in_lines(left)[-1] == (
        f"{MEMBER}: it took part in {RUN}, but {up.spec.path} does not name it, so that host was not searched; "
        "add it again, then run `launch down` again"
    )
