"""Many histories are run in processes, counted, and looked at for what they have met."""

from types import SimpleNamespace
from typing import Any, List

import pytest

from tests.simulation import branches, lines, met
from tests.simulation.__main__ import main
from tests.simulation.faults import Fault
from tests.simulation.launcher.baton import Strand
from tests.simulation.loops import Agenda
from tests.simulation.many import lived, outcomes
from tests.simulation.verdict import promise, verdict
from tests.simulation.world import World
from tests.support.waiting import let_pass

NONE = ["--tries", "0", "--processes", "1"]


def test_histories_in_processes_are_those_of_one_process() -> None:
    seeds = [109, 115]  # which end soon
    assert [each[:-1] for each in outcomes(seeds, 2)] == [each[:-1] for each in map(lived, seeds)]


def test_any_exception_of_a_history_is_a_violation(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(world: World) -> Any:
        raise KeyError(world.seed)

    monkeypatch.setattr(World, "run", run)
    assert main(["--seeds", "2", "--first", "7", *NONE]) == 1
    printed = capsys.readouterr().out
    assert "seed 7: KeyError: 7\n" in printed and "2 histories, " in printed and ": 2 violations" in printed


@pytest.mark.parametrize("work", [lambda: None, lambda: let_pass(0.05)])
def test_a_history_that_does_not_end_is_left(work: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where a coroutine of an agent never returns, and where it only waits."""

    async def never(agent: Any) -> None:
        while True:
            work()

    monkeypatch.setattr("tests.simulation.lives.Lead.run", never)
    assert promise(verdict(World(17459, []), cpu_s=0.1)) == "hang"


def test_kinds_of_exceptions_in_coroutines_are_promises_of_their_own() -> None:
    whys = ["I0: h1: Task exception was never retrieved: KeyError('x')", "I1: 2 processes: of (x)", None]
    assert [promise(why) for why in whys] == ["I0 KeyError", "I1", ""]


def test_what_a_fault_meets_is_the_phase_and_the_fault_before_it() -> None:
    faults = [Fault(0.5, "clock", "h1"), Fault(60.0, "slow", "h1"), Fault(70.0, "stop"), Fault(70.3, "clock", "h1")]
    world = World(17459, faults)
    found = met.watch(world)
    assert verdict(world) is None
    assert [tuple(each) for each in found] == [
        ("gathering", "clock", "-"), ("training", "slow", "-"), ("training", "stop", "slow"),
        ("closing", "clock", "stop"),
    ]  # fmt: skip
    said = "\n".join(met.report(dict.fromkeys(found, 1)))
    assert said.startswith("4 of ") and "    gathering: cut, " in said and "    closing: cut, " in said


def test_lines_that_no_history_has_run_are_listed() -> None:
    from launch.agent.protocol.silence import Silences

    of = lines.Lines()
    with of.traced():
        Silences(["h1"], 10.0, 0.0, {}).silent(3.0)
    report = list(lines.report(of))
    assert [each for each in report if each.endswith("silence.py")] == []
    (silence,) = (each for each in report if "silence.py: never " in each)
    assert 0 < float(silence.split()[0]) < 100 and report[-1].endswith(" lines")
    listed = {each.split()[4].rstrip(":") for each in report[:-2]}
    agents = {
        f"launch/agent/{path}.py" for path in ("service/lead", "service/member", "service/keeping", "protocol/gate")
    }
    assert {*agents, "launch/run/follower.py", "launch/run/lifecycle.py"} <= listed


def test_the_ways_of_conditions_that_were_never_taken_are_listed() -> None:
    lines_of = ["if x:", "    x = 1", "while x < 3:", "    x += 1", "if x > 9 or (", "    x > 8):", "    return"]
    text = "def f(x):\n" + "".join(f"    {line}\n" for line in lines_of)
    steps = {(0, 2), (2, 3), (3, 4), (4, 5), (5, 4)}
    assert branches.ways(text, steps) == (6, 4, ["2 never false", "4 never false"])
    after = {*steps, (2, 4), (4, 6), (6, 7), (7, 8)}
    assert branches.ways(text, after) == (6, 1, ["6 never false"])


def test_a_strand_that_never_parks_is_a_hang_whatever_it_catches() -> None:
    caught: List[BaseException] = []
    agenda = Agenda()

    def never_parks() -> None:
        try:
            while True:
                pass
        except BaseException as error:
            caught.append(error)

    def run() -> None:
        while True:
            agenda.step()

    loop = SimpleNamespace(time=lambda: 0.0)
    program = SimpleNamespace(agenda=agenda, loop=loop, is_over=False, can_run=True, failed=caught.append)
    world: Any = SimpleNamespace(agenda=agenda, run=run, strand=Strand(program, never_parks))
    assert promise(verdict(world, cpu_s=0.1)) == "hang" and not caught
