"""The product's launchers in the simulated world, from ``up`` to their exits."""

import ast
import re
from pathlib import Path
from typing import List

import pytest

from tests.simulation.faults import Fault
from tests.simulation.launcher import code
from tests.simulation.launcher.names import OF_LAUNCHERS, OF_VERBS
from tests.simulation.names import NAMES
from tests.simulation.verdict import failure
from tests.simulation.world import World

ROOT = Path(__file__).resolve().parents[3]
ATTACHED, DETACHED, ELASTIC = 2000000, 2000002, 2500003  # seeds of such runs, on three hosts
CTRL_C = Fault(40.0, "ctrl-c")


def lived(seed: int, *faults: Fault) -> World:
    """A world whose history has happened, and has broken no promise."""
    world = World(seed, faults)
    assert failure(world) is None
    return world


def shown(world: World) -> List[str]:
    """What ``launch up`` has printed, without its times."""
    return [line.partition(" s] ")[2] or line for line in world.operators.up.shown]


def texts(world: World, host: str) -> List[str]:
    return [entry.text for entry in world.history if entry.host == host]


def test_ctrl_c_stops_an_attached_run_and_is_its_exit_code() -> None:
    world = lived(ATTACHED, CTRL_C)
    assert world.operators.up.code == 130
    assert "SIGINT: stopping the workers, then the ps; a second signal kills them at once" in shown(world)
    assert "r-20260101-000000 stopped: SIGINT to launch up" in shown(world)


@pytest.mark.parametrize("exits", [40.3, 40.1, 39.9], ids=["closing", "before the signal arrives", "before it"])
def test_a_run_whose_lead_dies_as_ctrl_c_comes_has_the_end_that_is_shown(exits: float) -> None:
    """Found by seed 3008811: the status stayed that of a running run, or became that of a stopped one."""
    world = lived(ATTACHED, *sorted([CTRL_C, Fault(exits, "exit", "h0")]))
    status = world.machines["h0"].folder.read_whole("status.json") or {}
    assert f"{world.run_name} {status['state']}: {status['cause']}" == shown(world)[-1]
    assert world.operators.up.code == 130 and status["state"] == "failed"


def test_a_seed_is_one_history() -> None:
    faults = [Fault(5.0, "watch", seconds=20.0), Fault(12.0, "half-open", "h0"), CTRL_C]
    one, other = lived(ATTACHED, *faults), lived(ATTACHED, *faults)
    assert one.digest == other.digest and len(one.history) > 20
    assert "lost the connection to h0; retrying" in shown(one)
    assert "launch status --watch ends: 130" in texts(one, "other")


def test_the_run_of_a_launcher_that_is_killed_ends_with_its_lease() -> None:
    world = lived(ATTACHED, Fault(20.0, "launcher"))
    status = world.machines["h0"].folder.read_whole("status.json") or {}
    assert world.operators.up.code == -9 and "its lease on the run ended" in status["cause"]
    assert world.agenda.now < 60.0


def test_an_attached_launcher_restarts_an_agent_that_was_killed() -> None:
    world = lived(ATTACHED, Fault(15.0, "agent", "h2"), Fault(60.0, "ctrl-c"))
    assert "h2: its agent is silent; restarting it" in shown(world)
    status = world.machines["h0"].folder.read_whole("status.json") or {}
    assert status["state"] == "stopped" and status["incidents"][0]["kind"] == "agent"


@pytest.mark.parametrize(
    "kind, why", [("full stdout", "No space left on device"), ("unread stdout", "its reader has read nothing for 3 s")]
)
def test_a_run_goes_on_whose_launcher_cannot_print(kind: str, why: str) -> None:
    world = lived(ATTACHED, Fault(15.0, kind), Fault(60.0, "ctrl-c"))
    assert world.operators.up.shown[-1] == f"cannot print to stdout: {why}; this command continues without it"
    assert world.operators.up.code == 130 and world.training.step > 100


def test_down_names_the_host_that_is_out_of_reach() -> None:
    world = lived(DETACHED, Fault(30.0, "cut", "h2", 60.0), Fault(35.0, "stop"))
    down = texts(world, "other")
    assert "h2: no answer within 10 s" in down and down[-1] == "launch down ends: 4"


def test_down_ends_a_run_and_finds_nothing_left() -> None:
    world = lived(DETACHED, Fault(30.0, "stop"))
    assert texts(world, "other")[-1] == "launch down ends: 0"
    assert "h0: r-20260101-000000: ended 4 processes in 3 groups" in texts(world, "other")[0]


def test_a_run_that_begins_while_down_looks_is_ended_on_every_host() -> None:
    """Found by seed 3035197: its lead's host had no run yet, and `launch up` restarted the agents of the others."""
    world = lived(ATTACHED, Fault(0.9, "another down"))
    assert shown(world)[-1] == "r-20260101-000000 stopped: launch down" and world.agenda.now < 60.0
    assert texts(world, "other")[-1] == "launch down ends: 0"


def test_a_run_goes_on_that_begins_after_down_has_found_none() -> None:
    world = lived(DETACHED, Fault(0.9, "another down"))
    assert texts(world, "other") == ["h[0-2]: no run of this name has been here", "launch down ends: 0"]
    assert world.operators.up.code == 0 and world.agenda.now > 500.0


def test_code_of_which_a_byte_has_changed_on_a_host_is_sent_again() -> None:
    world = lived(DETACHED, Fault(20.0, "damaged code", "h2"), Fault(30.0, "stop"))
    assert texts(world, "other")[-1] == "launch down ends: 0" and code.runs(world.machines["h2"])


def test_a_program_on_a_host_ends_where_the_connection_breaks_as_it_waits_for_the_code() -> None:
    faults = [Fault(0.0, "damaged code", "h3"), Fault(1.032, "cut", "h3", 0.5), Fault(2.1, "flap", "h3")]
    lived(3035945, *faults)


def test_a_full_disk_that_takes_no_code_has_a_line_with_what_is_left() -> None:
    faults = [Fault(18.0, "damaged code", "h2"), Fault(19.0, "disk", "h2", 30.0), Fault(20.0, "stop")]
    down = texts(lived(DETACHED, *faults), "other")
    assert any("0.0 MB and 0 files left" in line for line in down) and down[-1] == "launch down ends: 4"


def test_a_launcher_that_is_paused_by_ctrl_z_keeps_its_run() -> None:
    world = lived(ATTACHED, Fault(15.0, "ctrl-z", seconds=60.0), Fault(90.0, "ctrl-c"))
    assert world.operators.up.code == 130
    assert any(line.startswith("paused: the run continues") for line in shown(world))


def test_a_launcher_that_is_stopped_for_longer_than_the_lease_finds_its_run_at_an_end() -> None:
    world = lived(ATTACHED, Fault(15.0, "stopped launcher", seconds=60.0))
    assert world.operators.up.code == 1
    assert any("its lease on the run ended" in line for line in shown(world))


def test_a_launcher_that_cannot_reach_a_host_starts_nothing() -> None:
    world = lived(DETACHED, Fault(0.5, "cut", "h1", 30.0))
    assert world.operators.up.code == 3 and not any("starts" in entry.text for entry in world.history)


def test_what_a_broken_connection_may_have_lost_is_sent_again() -> None:
    world = lived(ATTACHED, Fault(20.0, "half-open", "h0"), Fault(20.5, "ctrl-c"))
    assert [line for line in shown(world) if "SIGINT:" in line] == [
        "SIGINT: stopping the workers, then the ps; a second signal kills them at once"
    ] * 2 and world.operators.up.code == 130


def test_a_launcher_shows_the_end_of_a_run_whose_lead_was_stopped_and_goes_on() -> None:
    """Found by a dense history: nobody could kill the lead, and the launcher took it for dead."""
    world = lived(ATTACHED, Fault(20.0, "keeper", "h0"), Fault(40.0, "stopped", "h0", 20.0))
    assert re.match("r-20260101-000000 stopped: no message from the launcher for 2[0-9] s", shown(world)[-1])


def test_a_lead_that_was_stopped_past_its_lease_ends_its_run_as_soon_as_it_goes_on() -> None:
    """Found by seed 3011349: the promise of its lease was looked at before the lead had looked at its clock."""
    gone = Fault(20.0, "keeper", "h0"), Fault(31.0, "laptop off"), Fault(32.0, "stopped", "h0", 40.0)
    world = lived(ATTACHED, *gone)
    status = world.machines["h0"].folder.read_whole("status.json") or {}
    assert status["cause"].endswith("so its lease on the run ended") and world.agenda.now < 90.0


def test_a_follower_affects_no_run() -> None:
    alone, watched = lived(ATTACHED, CTRL_C), lived(ATTACHED, Fault(10.0, "watch", seconds=20.0), CTRL_C)
    assert alone.operators.up.code == watched.operators.up.code
    assert abs(alone.training.step - watched.training.step) < 2  # the network delays each line by another time


def test_a_first_connection_to_the_lead_that_breaks_leaves_no_agent_behind() -> None:
    """Found by this seed: the launcher ended with 3, and its agents waited for their lease."""
    world = lived(2000300, Fault(4.6, "flap", "h0", 45.0))
    assert any(re.fullmatch("h0: the connection broke: .*; retrying", line) for line in shown(world))
    assert world.operators.up.code in (1, 3)  # whether a task began depends on the order of events at one time


def test_a_launcher_restarts_the_agent_of_a_host_that_has_lost_power() -> None:
    """Found by this seed: the plan of the run there was in pieces, and each try ended by an exception."""
    world = lived(2000487, Fault(33.1, "power", "h2", 3.0), Fault(60.0, "ctrl-c"))
    assert "h2: its agent is silent; restarting it" in shown(world)
    assert not any("did not restart: h2: `start`" in line for line in shown(world))


def test_a_host_that_loses_power_as_it_goes_down_has_another_sshd_after_its_boot() -> None:
    """Found by a dense seed, and the world's own fault: the sshd before had outlived the power cut."""
    world = lived(ELASTIC, Fault(26.0, "reboot", "h1", 10.0), Fault(27.0, "power", "h1", 12.0), CTRL_C)
    assert texts(world, "h1").count("boots") == 1


NEXT = "the next agent begins"


def ends_of_child(child: Fault) -> List[str]:
    """What happens on a host where neither keeper nor agent records a child, and the agent is killed."""
    unkept = [Fault(15.0, "keeper", "h2"), Fault(20.0, "stopped", "h2", 30.0)]
    world = lived(ATTACHED, *unkept, child, Fault(26.0, "agent", "h2"), CTRL_C)
    return [text for text in texts(world, "h2") if text.startswith("a child of ") or text == NEXT]


def test_a_child_that_no_record_names_ends_before_the_next_agent_begins() -> None:
    """Found by a dense seed, and the world's own fault: its tasks lacked the variable with the run's name."""
    assert ends_of_child(Fault(25.0, "children", "ps:1")) == ["a child of ps:1 attempt 0 ends: -9", NEXT]


def test_a_child_in_a_session_of_its_own_that_no_record_names_ends_before_the_next_agent_begins() -> None:
    """The next agent began beside it: the product looked for it in its leader's session alone."""
    own_session = Fault(25.0, "children", "ps:1", 12.0)
    assert ends_of_child(own_session) == ["a child of ps:1 attempt 0 ends: -9", NEXT]


def test_a_launcher_that_wakes_when_its_lease_has_ended_does_not_say_that_its_run_is_up() -> None:
    """Found by this seed: ``up -d`` ended with 0, and the run that it had left was stopping."""
    world = lived(3001583, Fault(4.8, "laptop sleeps", "", 15.0))
    assert world.operators.up.code == 1 and "its lease on the run ended" in shown(world)[-1]


def test_a_detached_run_goes_on_whose_lead_cannot_write_that_it_is_left() -> None:
    """The launcher took each answer of that lead for silence, and took the run down after 15 s."""
    world = lived(DETACHED, Fault(4.7, "disk", "h0", 60.0))
    assert "h0 has not recorded that the run continues without this launcher" in "\n".join(shown(world))
    assert world.operators.up.code == 0 and world.training.step > 1000


def test_a_launcher_whose_run_ended_with_a_login_names_a_host_that_it_could_not_ask() -> None:
    """Found by this seed: ``up -d`` ended with 3, and an agent was left on a host that no line named."""
    world = lived(3004289, Fault(5.0, "damaged off", "h0"), Fault(10.0, "cut", "h2", 30.0))
    assert world.operators.up.code == 3 and "\nh2: no answer within 10 s; the run" in shown(world)[-1]


def test_a_return_that_a_worker_reports_at_its_last_step_of_before_is_in_the_incident() -> None:
    """Found by this seed, and the world's own fault: the worker seemed to stand, as its examples were the same."""
    world = lived(3006350, Fault(14.6, "agent", "h1"))
    (incident,) = (world.machines["h0"].folder.read_whole("status.json") or {})["incidents"]
    assert (incident["kind"], incident["lost_steps"], incident["resumed_from"]) == ("agent", 1, 25)


def test_a_return_that_a_stopped_agent_reports_late_counts_once() -> None:
    """Found by this seed: that agent had reported no step since the return, and then the next return came."""
    world = lived(3009055, Fault(69.7, "agent", "h1"), Fault(71.0, "keeper", "h1"), Fault(72.0, "stopped", "h1", 20.0))
    status = world.machines["h0"].folder.read_whole("status.json") or {}
    assert status["lost_steps"] == world.training.steps_lost == 34


@pytest.mark.parametrize("dies", [34.1, 34.3])
def test_a_return_to_before_a_checkpoint_that_is_damaged_counts_once(dies: float) -> None:
    """Found by this seed: the lead knew step 73 and the chief's 72, and the damaged checkpoint had 75."""
    damaged = Fault(dies + 1.0, "damaged checkpoint", "h0")
    world = lived(3010033, Fault(dies, "agent", "h0"), damaged, Fault(dies + 10.0, "stop"))
    status = world.machines["h0"].folder.read_whole("status.json") or {}
    assert status["lost_steps"] == world.training.steps_lost == 25


SLEEPS, SILENT = Fault(1.3, "sleep", "h2", 11.0), [Fault(10.0, "line", "h1", 12.0), Fault(20.0, "cut in", "h2", 20.0)]


@pytest.mark.parametrize(
    "code, host, seed, faults",
    [
        (3, "h2", 3004363, [SLEEPS, *SILENT, Fault(20.0, "agent", "h0")]),
        (130, "h2", 3004363, [SLEEPS, *SILENT, Fault(20.1, "ctrl-c")]),
        (
            3,
            "h1",
            3004589,
            [
                Fault(0.0, "slow", "h2", 10.0),
                Fault(4.0, "cut out", "h0", 15.0),
                Fault(10.0, "half-open", "h1"),
                Fault(17.0, "write killed", "h0"),
                Fault(20.0, "stopped", "h1", 10.0),
            ],
        ),
    ],
)
def test_a_launcher_whose_start_failed_names_a_host_that_it_could_not_ask(
    code: int, host: str, seed: int, faults: List[Fault]
) -> None:
    """Found by these seeds: ``up`` ended with 3, and an agent was left on a host that no line named."""
    world = lived(seed, *faults)
    named = [line for line in shown(world)[-1].splitlines() if line.endswith("; the run may continue there")]
    assert world.operators.up.code == code and [line.partition(":")[0] for line in named] == [host]


# Modules of the launcher that histories run; of time, threads and signals they ask by name.
OF_RUNS = ("attached", "draft", "follower", "graph_check", "lifecycle", "outliving", "resume", "start")
LAUNCHERS = [
    *(f"launch/run/{name}.py" for name in OF_RUNS), "launch/calls.py", "launch/fleet.py", "launch/signals.py",
    "launch/teardown.py", "launch/history.py", "launch/hosts/channel.py", "launch/hosts/conversation.py",
    "launch/hosts/rpc.py", "launch/output.py", "launch/verbs/up.py", "launch/view/plain_view.py",
]  # fmt: skip
VERBS = [
    *(f"launch/agent/verbs/{name}.py" for name in ("down", "status")), "launch/agent/__main__.py",
    "launch/agent/checkpoints/resume.py", "launch/agent/checkpoints/stored.py",
    "launch/agent/leftovers.py", "launch/agent/protocol/local_socket.py", "launch/agent/service/beginning.py",
]  # fmt: skip
OUTSIDE = {
    "time", "threading", "signal", "os", "select", "socket", "ThreadPoolExecutor", "wait", "wait_for", "readable",
    "fork_away", "subprocess", "datetime",
}  # fmt: skip
UNUSED = {  # by the runs of histories, or for constants and paths alone
    "launch.run.attached.signal", "launch.agent.verbs.down.signal", "launch.agent.leftovers.signal",
    "launch.agent.service.beginning.signal", "launch.hosts.rpc.os", "launch.run.draft.os", "launch.run.start.os",
    "launch.calls.ThreadPoolExecutor", "launch.calls.threading", "launch.output.signal", "launch.run.resume.time",
    "launch.run.draft.datetime",
}  # fmt: skip


@pytest.mark.parametrize("path", [*LAUNCHERS, *VERBS])
def test_launchers_and_verbs_ask_for_nothing_else_of_this_machine(path: str) -> None:
    known = {*NAMES, *OF_LAUNCHERS, *OF_VERBS, *UNUSED}
    module, body = path[:-3].replace("/", "."), ast.parse((ROOT / path).read_text()).body
    imports = [node for node in body if isinstance(node, (ast.Import, ast.ImportFrom))]
    names = {alias.asname or alias.name for node in imports for alias in node.names}
    assert {f"{module}.{name}" for name in names & OUTSIDE} - known == set()
