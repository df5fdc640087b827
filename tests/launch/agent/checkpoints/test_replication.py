"""A host that keeps copies has each checkpoint soon after the chief told of it, the last one by the end of the run."""

from pathlib import Path
from typing import Callable

from launch.agent.checkpoints import resume
from launch.agent.wire.verb_requests import HeldRequest
from tests.support.agent.agents import MEMBER, RUN, Agents
from tests.support.agent.saved import steps
from tests.support.waiting import eventually

Run = Callable[..., Agents]
SAVE = """
    mkdir -p ../checkpoint
    head -c 5000000 /dev/urandom > ../checkpoint/model-{step}.data-00000-of-00001
    echo index > ../checkpoint/model-{step}.index
    echo '{{"step": {step}, "checkpoint_step": {step}}}' > partial
    mv partial progress.json
"""
UNTIL = "until test -e {}; do sleep 0.05; done"


def replicated(run: Run, tmp_path: Path) -> Agents:
    """A run whose chief saves at step 10, and when there is a file ``more`` at step 20, which is its last act."""
    saves = [SAVE.format(step=step) for step in (10, 20)]
    chief = "".join(['set -e; cd "$LAUNCH_TASK_DIR"', saves[0], UNTIL.format(tmp_path / "more"), saves[1]])
    scripts = {"chief:0@localhost": chief, "worker:0@127.0.0.1": UNTIL.format(tmp_path / "more")}
    return run(scripts, replicas=[MEMBER], keep=1)


def test_a_host_has_each_checkpoint_and_the_last_one_when_the_run_is_over(run: Run, tmp_path: Path) -> None:
    agents = replicated(run, tmp_path)
    agents.up()
    copies = agents.folder(MEMBER).replica
    eventually("the copy of the first", lambda: agents.status()["replicas"] == {MEMBER: 10})
    assert steps(copies) == [10]
    (tmp_path / "more").touch()
    status = agents.ended()
    assert (status["state"], status["replicas"]) == ("succeeded", {MEMBER: 20})
    assert steps(copies) == [20], "as many as are to be kept"
    for path in copies.glob("model-20.*"):
        assert path.read_bytes() == (agents.folder().checkpoint / path.name).read_bytes()
    assert not agents.left()


def test_a_host_that_cannot_store_a_copy_is_an_incident_and_training_goes_on(run: Run, tmp_path: Path) -> None:
    agents = replicated(run, tmp_path)
    for host in agents.requests:
        assert agents.start(host).get("ready")
    agents.folder(MEMBER).replica.touch()  # where a folder should be made
    agents.tell({"do": "go"})
    incident = eventually("an incident", lambda: agents.status()["incidents"])[0]
    assert (incident["kind"], incident["host"]) == ("checkpoint", MEMBER)
    assert incident["cause"].startswith("cannot copy the checkpoint to 127.0.0.1: the other side: ")
    (tmp_path / "more").touch()
    status = agents.ended()
    assert (status["state"], status["replicas"]) == ("succeeded", {MEMBER: None})


def test_what_was_copied_is_what_a_later_run_goes_on_from_there(run: Run, tmp_path: Path) -> None:
    agents = replicated(run, tmp_path)
    agents.up()
    eventually("the copy", lambda: agents.status()["replicas"] == {MEMBER: 10})
    held = resume.held(HeldRequest(agents.reference(MEMBER), None))["held"]
    assert [(each["run"], each["step"]) for each in held] == [(RUN, 10)]
