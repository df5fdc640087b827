"""``launch up --resume`` in the simulated world, after a stop, a kill, and the loss of a host."""

from typing import List

import pytest

from launch.agent.state import runs
from launch.agent.state.run_folder import RunFolder
from tests.simulation.faults import Fault
from tests.simulation.launcher.test_launcher import ATTACHED, DETACHED, lived, shown, texts
from tests.simulation.runs import RUN
from tests.simulation.world import World

STOP, RESUME, END = Fault(22.0, "stop"), Fault(30.0, "resume"), Fault(45.0, "stop")


def resumed_from(world: World) -> List[str]:
    """The lines in which the last launcher says what it resumes."""
    return [line for line in shown(world) if line.startswith("continuing from the checkpoint of ")]


def test_a_stopped_run_resumes_from_its_last_step() -> None:
    world = lived(DETACHED, STOP, RESUME, END)
    assert resumed_from(world) == ["continuing from the checkpoint of step 46 of r-20260101-000000"]
    assert world.training.began_with == 46 and world.training.step > 60
    assert world.machines["h0"].folder.run == "r-20260101-000030"


def test_what_a_damaged_checkpoint_loses_is_in_an_incident_of_the_next_run() -> None:
    world = lived(DETACHED, STOP, Fault(25.0, "damaged checkpoint", "h0"), RESUME, END)
    status = world.machines["h0"].folder.read_whole("status.json") or {}
    assert [(each["kind"], each["lost_steps"]) for each in status["incidents"]] == [("checkpoint", 21)]
    assert status["lost_steps"] == 21 and world.training.began_with == 25


def test_what_a_damaged_checkpoint_loses_is_counted_until_a_power_cut_takes_the_status() -> None:
    """Found by this seed: the status was empty then, and the next lead could not know of the incident."""
    damaged, cut = Fault(40.0, "damaged checkpoint", "h0"), Fault(110.0, "write unpowered", "h0")
    stop, resume = Fault(29.0, "stop"), Fault(45.0, "resume")
    world = lived(3016690, Fault(10.0, "write unpowered", "h1", 5.0), stop, damaged, resume, cut)
    assert world.training.passed_over == world.operators.resumes.forgotten.steps == 13
    assert world.operators.resumes.forgotten.incidents == 1


@pytest.mark.parametrize("ends, named", [(82.7, 0), (84.0, 1)], ids=["before its report is read", "later"])
def test_what_a_damaged_checkpoint_loses_is_named_unless_the_leads_agent_ends_at_once(ends: float, named: int) -> None:
    """Found by this seed: the chief had reported 0.2 s before, and its agent had not read that."""
    damaged = Fault(80.0, "damaged checkpoint", "h0")
    world = lived(3020111, Fault(78.0, "agent", "h1"), damaged, Fault(ends, "agent", "h0"))
    incidents = (world.machines["h0"].folder.read_whole("status.json") or {})["incidents"]
    assert sum(each["kind"] == "checkpoint" for each in incidents) == named
    assert world.training.passed_over == 25 and world.operators.resumes.forgotten == (0, 1 - named)


def test_a_damaged_checkpoint_is_an_incident_of_its_own_also_where_the_chief_has_ended_before() -> None:
    """Found by this seed: the incident of the chief's end had it as one more failure that followed."""
    damaged, crash = Fault(70.0, "damaged checkpoint", "h0"), Fault(70.0, "crash", "worker:0")
    world = lived(3080237, Fault(66.4, "agent", "h0"), damaged, crash)
    incidents = (world.machines["h0"].folder.read_whole("status.json") or {})["incidents"]
    assert [each["kind"] for each in incidents] == ["agent", "exit", "checkpoint"]


def test_an_older_run_keeps_a_checkpoint_that_the_run_after_it_has_damaged_and_launch_up_names_it() -> None:
    """The older run's is ignored, as docs/replicas.md says; found by seed 3001378."""
    again = [Fault(32.0, "another down"), Fault(40.0, "damaged checkpoint", "h0"), Fault(45.0, "resume")]
    world = lived(DETACHED, STOP, RESUME, *again, Fault(60.0, "stop"))
    assert resumed_from(world) == ["continuing from the checkpoint of step 25 of r-20260101-000030"]
    ignored = "ignoring the checkpoint of step 46 of r-20260101-000000, an older run: h0:"
    assert any(line.startswith(ignored) for line in shown(world)) and world.operators.resumes.ignored == 46


def test_a_host_whose_power_cut_takes_the_order_of_runs_has_it_by_their_names() -> None:
    """Found by this seed: names were of another year than the launcher's clock, so the oldest run came first."""
    cut, stop, resume = Fault(1.3, "write unpowered", "h1", 30.0), Fault(30.0, "stop"), Fault(30.0, "resume")
    world = lived(3019855, cut, stop, resume)
    oldest = RunFolder(world.machines["h1"].folder.workdir, RUN, "h1")
    assert oldest.read_whole(runs.GENERATION) is None  # in pieces
    _, before, _ = world.operators.drafts
    assert resumed_from(world) == [f"continuing from the checkpoint of step {world.training.began_with} of {before}"]


def test_a_run_does_not_resume_beside_the_one_before() -> None:
    """The launcher is killed, and its run ends with the lease: until then, each try is refused."""
    world = lived(ATTACHED, Fault(16.0, "launcher"), Fault(17.0, "resume"), Fault(60.0, "ctrl-c"))
    refused = [text for text in texts(world, "terminal") if text == "launch up --resume ends: 3"]
    assert refused and resumed_from(world)


def test_a_run_resumes_whose_chiefs_host_was_lost() -> None:
    world = lived(ATTACHED, Fault(16.0, "power", "h0", 30.0), Fault(17.0, "resume"), Fault(85.0, "ctrl-c"))
    assert resumed_from(world) and world.operators.up.code == 130
    assert shown(world)[-1].endswith("stopped: SIGINT to launch up")
