"""Many hosts in one line: counted, folded, and told no more often than one can read."""

import io
from typing import List

from launch.view.host_progress import MOST_STAGES, HostProgress
from tests.support.clocks import Clock

HOSTS = [f"gpu{n:02}" for n in range(1, 65)]


def lines(output: io.StringIO) -> List[str]:
    return output.getvalue().splitlines()


def test_hosts_at_the_same_stage_are_folded_and_the_others_counted() -> None:
    progress = HostProgress(HOSTS, io.StringIO())
    for host in HOSTS[:12]:
        progress.ready(host)
    progress.failed("gpu20")
    for host in ("gpu13", "gpu15"):
        progress.show(host, "fetching tensorflow-gpu")
    progress.show("gpu14", "connecting")
    assert progress.text() == "12 of 64 ready, 1 failed; gpu[13,15] fetching tensorflow-gpu; gpu14 connecting"


def test_a_host_is_told_of_at_its_newest_stage_only() -> None:
    progress = HostProgress(HOSTS, io.StringIO())
    progress.show("gpu01", "connecting")
    progress.show("gpu01", "fetching numpy")
    assert progress.text() == "0 of 64 ready; gpu01 fetching numpy"
    progress.ready("gpu01")
    assert progress.text() == "1 of 64 ready"


def test_of_many_stages_the_most_common_are_named() -> None:
    progress = HostProgress(HOSTS, io.StringIO())
    for number in range(MOST_STAGES + 3):
        progress.show(HOSTS[number], f"fetching p{number}")
    assert progress.text().endswith(f"{HOSTS[MOST_STAGES - 1]} fetching p{MOST_STAGES - 1}; 3 more at other stages")


def test_a_line_comes_when_it_is_new_and_at_most_every_two_seconds() -> None:
    clock, output = Clock(0.0), io.StringIO()
    with HostProgress(["a", "b"], output, clock) as progress:
        progress.show("a", "connecting")
        assert lines(output) == []
        clock.now = 2.0
        progress.show("a", "fetching numpy")
        clock.now = 3.0
        progress.ready("b")
        clock.now = 5.0
        progress.show("a", "fetching numpy")
        clock.now = 8.0
        progress.show("a", "fetching numpy")
    assert lines(output) == ["[   2.0 s] 0 of 2 ready; a fetching numpy", "[   5.0 s] 1 of 2 ready; a fetching numpy"]


def test_what_came_too_early_for_a_line_of_its_own_is_told_as_soon_as_there_is_time() -> None:
    clock, output = Clock(0.0), io.StringIO()
    progress = HostProgress(["a"], output, clock)
    progress.show("a", "receiving numpy")
    progress.look()
    assert lines(output) == []
    clock.now = 2.0
    progress.look()
    progress.look()
    assert lines(output) == ["[   2.0 s] 0 of 1 ready; a receiving numpy"]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_gets_one_line_that_changes_in_place() -> None:
    terminal = Terminal()
    with HostProgress(["a"], terminal) as progress:
        progress.show("a", "fetching numpy")
    assert "0 of 1 ready; a fetching numpy" in terminal.getvalue()
    assert not any(line.startswith("[") and " s] " in line for line in lines(terminal))
