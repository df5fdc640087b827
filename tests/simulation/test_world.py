"""A sample of simulated histories: no promise is broken, and a seed is the same history each time."""

import ast
import re
from dataclasses import replace
from pathlib import Path
from typing import Iterator, List

import pytest

from launch.agent.protocol.silence import WAKING_S
from tests.simulation.faults import Fault
from tests.simulation.names import NAMES
from tests.simulation.runs import DENSE_FROM, PAUSES_FROM
from tests.simulation.short import short
from tests.simulation.verdict import failure
from tests.simulation.world import World

ROOT = Path(__file__).resolve().parents[2]
SEEDS = (1, 2, DENSE_FROM + 1, DENSE_FROM + 11)
ATTACHED = 3  # a run of four hosts whose launcher stays
WITH_SLEEP = 2498  # an elastic run of four hosts
SLEEP = [Fault(244.4, "sleep", "h2", 35.6)]


@pytest.mark.parametrize("seed", SEEDS)
def test_no_promise_is_broken(seed: int) -> None:
    assert failure(World(seed)) is None


def test_later_seeds_have_pauses_as_long_as_a_loss_and_second_notices() -> None:
    before, later = ([World(seed) for seed in range(first, first + 80)] for first in (PAUSES_FROM - 80, PAUSES_FROM))
    assert [{world.plan.backoff_s for world in worlds} for worlds in (before, later)] == [{1.0}, {1.0, 6.5, 13.0}]
    hosts = [[fault.what for fault in world.faults if fault.kind == "leave"] for world in later]
    assert any(len(each) > len({*each}) for each in hosts)


def test_dense_seeds_have_many_faults_early_and_a_short_run_whichever_of_them_are_tried() -> None:
    worlds = [World(seed) for seed in range(DENSE_FROM, DENSE_FROM + 80)]
    assert sum(len(world.faults) for world in worlds) > 5 * 80
    assert all(world.faults[-1].at < 125 and world.faults[0].seconds <= 35 for world in worlds)
    assert all(World(world.seed, []).plan.steps == world.plan.steps for world in worlds[:5])


def test_a_seed_is_one_history() -> None:
    faults = [Fault(60.0, "cut", "h2", 14.0), Fault(62.0, "crash", "worker:1"), Fault(110.0, "stop")]
    one, other = World(WITH_SLEEP, faults), World(WITH_SLEEP, faults)
    assert failure(one) == failure(other) is None
    assert one.digest == other.digest and len(one.history) > 20


def test_a_seed_has_the_same_faults_on_each_python() -> None:
    """What happens may differ: ``wait_for`` and others order what is due at one time."""
    assert list(map(str, World(2).faults)) == [
        "213.5 drain ps:0 for 30.5 s", "214.5 agent h1 for 34.9 s", "244.9 cut h1 for 26.1 s",
        "352.5 flap h1 for 134.2 s",
    ]  # fmt: skip


def test_a_run_without_faults_trains_to_its_end() -> None:
    world = World(17459, [])
    assert failure(world) is None and world.training.step == world.plan.steps
    assert world.agenda.now < 700


def test_a_step_that_is_taken_again_counts_a_further_example() -> None:
    world = short(30181, Fault(50.0, "crash", "ps:0"))
    assert failure(world) is None and world.training.steps_lost
    reported = next(each for each in world.training.processes if each.task == "worker:0").program._written
    assert reported["examples"] == reported["step"] + world.training.steps_lost


def test_workers_that_are_prepared_for_a_formation_are_no_former_ones_of_it() -> None:
    """An elastic run whose workers restart together: the promise took them for such."""
    assert failure(short(1000023, Fault(6.2, "drain", "worker:2"), Fault(30.0, "stop"))) is None


def test_a_host_that_was_suspended_ends_its_tasks_before_it_gets_them_again() -> None:
    """Its silence is as long as the lead's count, which went on: found by a seed."""
    world = short(WITH_SLEEP, *SLEEP)
    assert failure(world) is None
    killed = [
        entry.at for entry in world.history if entry.host == "h2" and "no message from the lead for 10 s" in entry.text
    ]
    woken = next(entry.at for entry in world.history if entry.text == "wakes")
    assert killed and killed[0] - woken < 0.5


def test_a_host_that_wakes_and_has_a_new_link_at_once_still_ends_its_tasks() -> None:
    """Its agent was dialling when it was suspended: found by a seed."""
    faults = [
        Fault(6.694445478318599, "cut out", "h2", 10.676138851185524),
        Fault(31.303362166670393, "cut out", "h2", 12.901705043078229),
        Fault(35.539232576520625, "sleep", "h2", 33.34359207356689),
    ]
    assert failure(short(30014, *faults)) is None


def test_a_lead_that_ends_before_it_has_written_of_a_start_uses_no_attempt_again() -> None:
    """The real launcher has shown it first."""
    assert failure(short(30181, Fault(1.15, "agent", "h0"))) is None


@pytest.mark.parametrize(("seed", "kind"), [(19271, "power"), (147, "reboot")])
def test_a_lead_that_a_boot_starts_uses_no_attempt_again(seed: int, kind: str) -> None:
    """A power cut undoes what was not synced, and leaves the status in pieces."""
    assert failure(short(seed, Fault(76.54307419253237, kind, "h0", 20.0))) is None


def test_a_host_on_which_a_killed_process_hangs_joins_when_that_is_gone() -> None:
    """Else the lead gives it the same task again, beside the one that hangs: found by a seed."""
    assert failure(short(101862, Fault(10.0, "cut in", "h2", 10.0), Fault(10.0, "stuck", "ps:1", 50.0))) is None


def test_a_save_at_the_first_step_after_a_return_hides_none_of_the_steps_that_are_lost() -> None:
    assert failure(short(108314, Fault(90.0, "save", "h5", 0.0), Fault(90.0, "crash", "ps:1", 0.0))) is None


def test_what_hosts_report_of_before_a_cut_hides_no_step_that_is_lost() -> None:
    assert failure(short(115470, Fault(159.2, "cut in", "h0", 66.0))) is None


def test_what_tasks_report_that_a_host_s_return_has_ended_hides_no_step_that_is_lost() -> None:
    cut, sleep = Fault(210.0, "cut", "h2", 120.0), Fault(245.6132134391261, "sleep", "h0", 120.0)
    assert failure(short(200223, cut, sleep)) is None


def test_a_stop_before_the_chief_has_reported_its_first_step_need_not_save_it() -> None:
    assert failure(short(205115, Fault(4.372046366157019, "stop", "h1", 3.0))) is None


def test_a_host_dials_again_when_a_process_that_hung_as_the_lead_restarted_has_ended() -> None:
    stuck = [Fault(100.0, "stuck", "worker:2", 30.0), Fault(100.0, "agent", "h0", 0.0)]
    assert failure(short(208077, *stuck)) is None


def test_what_the_return_of_a_host_costs_is_in_its_incident() -> None:
    frozen = [Fault(315.0, "cut in", "h2", 30.0), Fault(350.0, "freeze", "worker:0", 0.0)]
    assert failure(short(207465, *frozen)) is None


def test_a_lead_that_ends_before_anybody_trains_again_hides_no_step_that_is_lost() -> None:
    assert failure(short(114077, Fault(110.0, "agent", "h0", 0.0), Fault(114.0, "stopped", "h0", 10.0))) is None


def test_a_cut_before_any_host_has_joined_is_an_incident_of_the_hosts() -> None:
    """Its kind is ``not-started``, as of a task that cannot start."""
    assert failure(short(235408, Fault(0.07, "cut", "h0", 116.0))) is None


def test_what_the_restart_of_a_ps_has_cost_is_in_its_incident_when_its_host_is_lost_before_it_serves() -> None:
    assert failure(short(237564, Fault(284.0, "crash", "ps:0", 0.0), Fault(288.0, "stopped", "h1", 10.0))) is None


def test_a_chief_that_returns_when_the_others_have_done_their_part_ends_too() -> None:
    faults = [
        Fault(80.0, "cut out", "h2", 0.0),
        Fault(110.0, "crash", "worker:2", 0.0),
        Fault(320.0, "stopped", "h1", 10.0),
        Fault(623.0, "crash", "worker:0", 0.0),
    ]
    assert failure(World(108607, faults)) is None


def test_servers_that_were_to_end_for_the_next_formation_may_end_first() -> None:
    """Their order comes when the run begins to end; it has a second of grace."""
    faults = [Fault(0.0, "leave", "h1"), Fault(0.0, "leave", "h3"), Fault(10.0, "cut out", "h2", 30.0)]
    assert failure(short(107292, *faults)) is None


@pytest.mark.parametrize("after_s", [4.5, 9.5])
def test_an_agent_that_freezes_in_a_silence_is_killed_before_its_host_is_lost(after_s: float) -> None:
    """Its keeper's patience is what is left of the silence, not the whole of it again: found by a double fault."""
    faults = [Fault(100.0, "cut", "h2", 60.0), Fault(100.0 + after_s, "stopped", "h2", 60.0)]
    assert failure(short(WITH_SLEEP, *faults)) is None


def test_a_member_that_does_not_count_its_suspension_breaks_a_promise(monkeypatch: pytest.MonkeyPatch) -> None:
    """A member that does not count its suspension has a process beside the next formation, by one fault."""
    monkeypatch.setattr(World, "since_boot", lambda self: self._here().time())
    assert (failure(short(WITH_SLEEP, *SLEEP)) or "").startswith("I1: 2 formations: ps:0 attempt 1 on h1, ")


LAUNCHER_GONE = [Fault(100.0, "launcher"), Fault(102.0, "sleep", "h0", 60.0)]


def test_a_lead_that_was_suspended_past_its_lease_kills_the_run_soon_after_it_wakes() -> None:
    """The launcher has given the run up meanwhile, and its successor may save into the same folder."""
    world = short(ATTACHED, *LAUNCHER_GONE)
    assert failure(world) is None
    woken = next(entry.at for entry in world.history if entry.text == "wakes")
    ends = [entry.at for entry in world.history if entry.host == "h0" and " ends: " in entry.text]
    assert ends and max(ends) < woken + WAKING_S + 1.5


def test_a_launcher_on_a_machine_that_was_suspended_renews_its_lease_after_waking() -> None:
    world = short(ATTACHED, Fault(102.0, "sleep", "h0", 20.0))
    assert failure(world) is None and world.training.step == world.plan.steps


# What starts, watches and ends tasks; ``work_folder`` and the rest have nothing to do here.
OF_TASKS = (
    "host_tasks", "attempt", "spawning", "task_reports", "standbys", "stacks", "task_log", "task_env",
)  # fmt: skip
OF_SERVICE = ("lead", "publication", "member", "member_links", "agent", "recovery", "keeping")
OUTSIDE = {
    "time", "secrets", "os", "socket", "random", "subprocess", "signal", "since_boot", "say", "say_once", "say_seldom",
    "inspect", "table", "environment", "status", "boot", "text_of", "threads", "waits_in", "names_in", "work_of",
    "Traffic", "MemoryKills", "glob", "read_sign",
}  # fmt: skip
# Of these modules histories need paths, and a listener's file, which no listener here has; local callers are those of
# worlds with launchers, which replace their socket.
ELSEWHERE = {
    "launch.agent.supervision.hang_detection.os", "launch.agent.protocol.gate.os", "launch.agent.protocol.gate.socket",
    "launch.agent.service.agent.socket",
}  # fmt: skip
CONSTANTS = {
    "signal": r"signal\.(SIG\w+|Signals)\b",
    "subprocess": r"subprocess\.(PIPE|DEVNULL|TimeoutExpired|Popen\[)",
}
REPLACED = {"launch.agent.tasks.task_log.LogTimes"}  # where it is used
EDGE = ROOT / "launch/agent/linux/processes.py"  # of which functions are replaced, not names that it imports


def test_agents_ask_for_nothing_else_of_this_machine() -> None:
    """What agents ask of time, secrets, processes and files by name is replaced."""
    agent = ROOT / "launch/agent"
    modules = [
        *(agent / "service" / f"{name}.py" for name in OF_SERVICE),
        *(agent / "protocol" / f"{name}.py" for name in ("links", "gate", "sealed", "silence", "messages")),
        *(agent / "supervision").glob("*.py"),
        *(agent / "state" / f"{name}.py" for name in ("process_records", "run_folder")),
        *(agent / "tasks" / f"{name}.py" for name in OF_TASKS),
        *(agent / "containers" / f"{name}.py" for name in ("command", "task_containers")),
        agent / "limits/task_limits.py",
        *(agent / "endings").glob("*.py"),
        *(ROOT / "cluster/protocol" / f"{name}.py" for name in ("standby", "shared_files")),
        EDGE,
    ]
    assert sorted({each for module in modules for each in _asked(module)} - {*NAMES, *ELSEWHERE}) == []
    assert sorted({each for module in modules for each in _defaults(module)} - {*NAMES, *REPLACED}) == []


def _asked(module: Path) -> Iterator[str]:
    """The names of a module that it has from outside, but for constants."""
    name, text = ".".join(module.relative_to(ROOT).with_suffix("").parts), module.read_text()
    imports = [node for node in ast.parse(text).body if isinstance(node, (ast.Import, ast.ImportFrom))]
    for each in (alias.name for node in imports for alias in node.names):
        known = re.compile(CONSTANTS.get(each, "$"))
        uses = [text[use.start() :] for use in re.finditer(rf"(?<![\w.]){each}\.(?=\w)", text)]
        is_edge = module == EDGE and each in ("signal", "subprocess")
        if each in OUTSIDE and not is_edge and not (uses and all(known.match(use) for use in uses)):
            yield f"{name}.{each}"


def _defaults(module: Path) -> Iterator[str]:
    """The functions and classes with a clock as a default argument: that is chosen before a world replaces its name."""
    name = ".".join(module.relative_to(ROOT).with_suffix("").parts)
    for owner in ast.parse(module.read_text()).body:
        defaults = [each for node in ast.walk(owner) if isinstance(node, ast.arguments) for each in node.defaults]
        asked = {each.attr for default in defaults for each in ast.walk(default) if isinstance(each, ast.Attribute)}
        if asked & {"time", "monotonic"}:
            yield f"{name}.{owner.name}"  # type: ignore[attr-defined]


def test_a_lead_that_restarts_twice_gets_a_host_whose_tasks_have_ended_by_the_first_restart() -> None:
    """The host waited for the end of these tasks once more, for ever: found by a seed."""
    faults = [Fault(0.0, "sleep", "h1", 70.0), Fault(30.0, "agent", "h0", 0.0), Fault(40.0, "agent", "h0", 0.0)]
    assert failure(short(300890, *faults)) is None


def test_a_return_that_a_worker_has_missed_does_not_count_again_with_the_next_one() -> None:
    """Its host was away for the first: found by a seed."""
    gone = [Fault(2.0, "crash", "worker:1", 0.0), Fault(15.0, "power", "h1", 0.0), Fault(34.0, "gone", "h2", 0.0)]
    assert failure(short(307825, *gone)) is None


LEAVES = [Fault(100.0, "stubborn", "worker:2", 0.0), Fault(110.0, "leave", "h2", 0.0), Fault(110.5, "leave", "h2", 0.0)]
IN_A_CUT = [LEAVES[0], Fault(110.0, "cut", "h2", 60.0), *(each._replace(at=each.at + 7.0) for each in LEAVES[1:])]


@pytest.mark.parametrize("faults", [IN_A_CUT, [*LEAVES, Fault(112.0, "sleep", "h2", 40.0)]], ids=["cut", "sleep"])
def test_a_host_that_leaves_ends_its_tasks_before_the_lead_starts_them_elsewhere(faults: List[Fault]) -> None:
    assert failure(short(2498, *faults)) is None


def test_a_host_that_leaves_starts_no_task_that_was_ordered_before() -> None:
    """Nothing would end it: the agent would stay until it ends by itself."""
    crashes = [Fault(at, "crash", "worker:1", 0.0) for at in (100.0, 110.0, 120.0)]
    leaves = [Fault(at, "leave", "h1", 0.0) for at in (121.0, 124.05)]
    assert failure(short(303, Fault(100.0, "stubborn", "worker:4", 0.0), *crashes, *leaves)) is None


def test_an_order_of_the_moment_in_which_a_host_is_lost_is_not_sent_when_it_returns() -> None:
    """A restart is due a quarter of a second before the lead handles the loss."""
    world = short(626, Fault(100.0, "crash", "worker:1", 0.0), Fault(100.9, "cut", "h1", 40.0))
    world.plan = replace(world.plan, backoff_s=13.0)
    assert failure(world) is None
