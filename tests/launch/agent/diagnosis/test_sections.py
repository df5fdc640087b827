"""What a host tells of a run: while it is up, after its end, after its agent died; and what hangs holds up nothing."""

import os
import threading
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List

import pytest

from launch.agent.diagnosis import sections
from launch.agent.diagnosis.sections import Scene, gather
from launch.agent.state import runs
from launch.agent.state.run_folder import RunFolder
from launch.agent.wire.diagnose_request import DiagnoseRequest
from launch.agent.wire.verb_requests import RunReference
from tests.support.agent.agents import LEAD, RUN, Agents
from tests.support.waiting import eventually

Run = Callable[..., Agents]
Values = Dict[str, Any]
SECRET = "correct-horse-battery"
# A Python that tells nothing: what is installed is another test's.
NOTHING = "/nowhere/python"


def told_by(request: DiagnoseRequest) -> Values:
    """{file: content}, and under "missing" and "run" what else was told."""
    told: List[Values] = []
    gather(request, told.append)
    assert "done" in told[-1]
    found: Values = {"missing": {each["missing"]: each["why"] for each in told if "missing" in each}}
    for each in told:
        if "file" in each:
            content = each.get("text", each.get("json"))
            before = found.get(each["file"])
            found[each["file"]] = {**before, **content} if isinstance(before, dict) else content
    return {**found, "run": told[-1]["run"]}


def asked(host: str, workdir: Path, within_s: float = 60.0) -> DiagnoseRequest:
    return DiagnoseRequest(RunReference("r", host, str(workdir)), NOTHING, ("MINE",), bytes=100_000, within_s=within_s)


def test_a_run_that_is_up_tells_its_processes_stacks_and_logs_without_its_secrets(run: Run) -> None:
    script = f"MINE={SECRET}; export MINE; echo up $MINE; sh -c 'sleep 1000 & wait' --token {SECRET} & wait"
    agents = run({"worker:0@localhost": script})
    agents.up()
    eventually("the log", lambda: "up" in agents.folder().log("worker:0", 0).read_text())
    eventually("its processes", lambda: told_by(asked(LEAD, agents.workdir))["live.json"]["processes"][4:])
    told = told_by(asked(LEAD, agents.workdir))
    tasks = [each for each in told["live.json"]["processes"] if each["task"] == "worker:0"]
    assert told["run"] == RUN and len(tasks) == 3 and told["live.json"]["agent"]
    assert {f"stacks/{each['pid']}.txt" for each in tasks} <= set(told)
    assert told["status.json"]["state"] == "running"
    assert told["tasks/worker.0/attempt_0.log"] == "up (secret)\n"
    assert told["plan.json"]["token"] == "(secret)"
    assert told["tasks/worker.0/spans.json"]["why_none"].startswith("it has no flight recorder")
    assert {"machine.json", "disks.json", "environment.json", "gpus.json", "versions.json"} <= set(told)
    assert "kernel.txt" in told or "kernel messages" in told["missing"]
    assert SECRET not in repr(told)


def test_after_its_agent_died_a_run_tells_what_is_in_its_files(run: Run) -> None:
    agents = run({"worker:0@localhost": "echo up; exec sleep 1000"})
    agents.up()
    eventually("the log", lambda: agents.folder().log("worker:0", 0).read_text() == "up\n")
    agents.kill(LEAD, keeper=True)
    eventually("the end of the agent", lambda: not agents.alive(LEAD))
    told = told_by(asked(LEAD, agents.workdir))
    assert told["live.json"]["agent"] is None
    assert told["status.json"]["state"] == "failed"
    assert told["tasks/worker.0/attempt_0.log"] == "up\n"


def test_where_no_run_has_been_the_machine_is_told(tmp_path: Path) -> None:
    told = told_by(asked("h", tmp_path))
    assert told["run"] is None and "live.json" not in told
    assert told["disks.json"][str(tmp_path)]["free_bytes"] > 0
    assert told["machine.json"]["memory"]["MemTotal"] > 0
    assert "cannot start" in told["versions.json"]["python"]["error"]


def test_a_section_that_hangs_or_breaks_is_named_and_holds_up_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    over = threading.Event()

    def hangs(scene: Scene) -> Iterator[Any]:
        yield "hanging.txt", "its beginning"
        over.wait(60)

    def breaks(scene: Scene) -> Iterator[Any]:
        yield "broken.txt", str(1 // 0)

    monkeypatch.setattr(sections, "SECTIONS", {"hanging": hangs, "broken": breaks, "machine": sections._machine})
    told = told_by(asked("h", tmp_path, within_s=4.0))
    over.set()
    assert told["missing"]["hanging"] == "not done within 4 s"
    assert told["missing"]["broken"] == "ZeroDivisionError: integer division or modulo by zero"
    assert told["hanging.txt"] == "its beginning" and "machine.json" in told


def test_the_conversation_tells_the_time_as_often_as_it_is_asked() -> None:
    requests = iter([{"do": "time"}, {"do": "time"}])
    told: List[Values] = []
    with pytest.raises(StopIteration):
        sections.diagnose(lambda: next(requests), told.append)
    assert [sorted(each) for each in told] == [["time"], ["time"]]


def test_a_run_began_when_it_did_though_its_agent_has_given_its_files_a_newer_time_since(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path, "r-20261120-155902", "h")
    folder.create()
    folder.write("plan.json", {})
    scene = sections.scene_of(asked("h", tmp_path))
    assert scene.folder is not None and scene.began == runs.stamp(scene.folder.run) == 1_795_190_342
    os.utime(str(folder.own / "plan.json"), (1_790_000_000, 1_790_000_000))
    assert scene.began == 1_790_000_000  # by this host's clock, which is behind the launcher's
