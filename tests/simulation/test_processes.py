"""The simulated process table behaves as a kernel's: zombies, groups, orphans, signals."""

import signal
from typing import Any, List, Tuple

import pytest

from tests.simulation.loops import Agenda
from tests.simulation.process_table import ProcessTable
from tests.simulation.processes import Process

AGENT, KEEPER = 2, 3


@pytest.fixture(name="agenda")
def _agenda() -> Agenda:
    return Agenda()


@pytest.fixture(name="ended")
def _ended() -> List[Tuple[int, bool]]:
    return []


@pytest.fixture(name="table")
def _table(agenda: Agenda, ended: List[Tuple[int, bool]]) -> ProcessTable:
    table = ProcessTable(agenda.after, lambda process, is_child: ended.append((process.pid, is_child)))
    table.agent, table.keeper = AGENT, KEEPER
    return table


def begin(table: ProcessTable, pid: int, parent: int = AGENT, **more: Any) -> Process:
    leader = pid if parent == AGENT else parent
    return table.add(Process(table, pid, parent, leader, leader, 100, {"A": "b"}, "worker:0", 0, "h0", 0.0, **more))


def pass_by(agenda: Agenda, seconds: float) -> None:
    """Let all happen that does within this time."""
    until = agenda.now + seconds
    agenda.after(seconds, lambda: None)
    while agenda.now < until:
        agenda.step()


def test_a_killed_child_is_a_zombie_until_it_is_reaped(
    table: ProcessTable, agenda: Agenda, ended: List[Tuple[int, bool]]
) -> None:
    begin(table, 10)
    table.kill(10, signal.SIGKILL)
    assert table.waitid(0, 10, 0) is None and table.waitpid(10) == (0, 0)
    pass_by(agenda, 1.0)
    row = table.row(10)
    assert row is not None and row.state == "Z" and table.environment(10) == {} and ended == [(10, True)]
    assert table.waitid(0, 10, 0) is not None and table.waitpid(10) == (10, 9)
    assert table.rows() == []
    with pytest.raises(ProcessLookupError):
        table.kill(10, signal.SIGKILL)
    with pytest.raises(ChildProcessError):
        table.waitpid(10)


def test_an_exit_code_is_reaped_as_the_kernel_has_it(table: ProcessTable) -> None:
    begin(table, 10).leave(3)
    assert table.waitpid(10) == (10, 3 << 8)


def test_a_child_outlives_its_leader_in_its_group_and_the_agent_adopts_it(table: ProcessTable, agenda: Agenda) -> None:
    leader = begin(table, 10)
    child = begin(table, 11, parent=10)
    leader.leave(1)
    row = table.row(11)
    assert row is not None and (row.parent, row.group, row.session, row.state) == (AGENT, 10, 10, "S")
    child.take(signal.SIGTERM)
    pass_by(agenda, 1.0)
    assert table.waitpid(11) == (11, 15)


def test_what_an_agent_leaves_the_keeper_adopts_and_its_leaders_are_killed(table: ProcessTable, agenda: Agenda) -> None:
    begin(table, 10).leave(0)
    begin(table, 12)
    begin(table, 13, parent=12)
    table.agent_ended()
    assert table.row(10) is None
    pass_by(agenda, 1.0)
    (left,) = table.rows()
    assert (left.pid, left.parent) == (13, KEEPER)


def test_a_stubborn_process_ignores_term_and_no_other_signal_that_kills(table: ProcessTable, agenda: Agenda) -> None:
    process = begin(table, 10, ignores_term=True)
    for number in (signal.SIGTERM, signal.SIGCONT):
        process.take(number)
    pass_by(agenda, 1.0)
    assert process.code is None
    process.take(signal.SIGKILL)
    pass_by(agenda, 1.0)
    assert process.code == -9


def test_no_signal_ends_what_hangs_in_the_kernel_before_it_goes_on(table: ProcessTable, agenda: Agenda) -> None:
    process = begin(table, 10)
    process.hang()
    process.take(signal.SIGKILL)
    pass_by(agenda, 60.0)
    assert process.row.state == "D" and process.is_still
    process.free()
    assert process.code == -9 and process.row.state == "Z"


def test_nothing_ends_while_its_machine_sleeps(table: ProcessTable, agenda: Agenda) -> None:
    process = begin(table, 10)
    process.take(signal.SIGKILL)
    table.sleep()
    pass_by(agenda, 60.0)
    assert process.code is None
    table.wake()
    assert process.code == -9


def test_without_power_nothing_is_left(table: ProcessTable) -> None:
    process = begin(table, 10)
    table.lose_power()
    assert process.code == -9 and table.rows() == []
