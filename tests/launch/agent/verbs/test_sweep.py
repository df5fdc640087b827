"""What earlier runs left on a host is found by their records; nothing else is touched, living runs least of all."""

import os
import subprocess
import time
from dataclasses import replace
from pathlib import Path
from typing import Any, Callable, Dict, List

from cluster.protocol.typed_json import to_values
from launch.agent.environments.environment import Environment
from launch.agent.linux.processes import inspect, is_same
from launch.agent.state import process_records
from launch.agent.state.run_folder import RunFolder
from launch.agent.verbs import down
from launch.agent.verbs import sweep as verb
from launch.agent.verbs.sweep import UNFINISHED_S
from launch.agent.wire.verb_requests import SweepRequest
from tests.support.agent.agents import LEAD, RUN, Agents
from tests.support.launch.machine import living_under
from tests.support.waiting import eventually

Run = Callable[..., Agents]
CHILD = "sleep 1000 & wait"


def sweep(request: SweepRequest) -> Dict[str, Any]:
    """What a host answers."""
    return to_values(verb.sweep(request))


def request_of(agents: Agents, kill: bool = False, host: str = LEAD) -> SweepRequest:
    return SweepRequest(host, str(agents.workdir), kill)


def leave(agents: Agents) -> None:
    """A run of which agent, keeper and task were killed and a child lives on."""
    agents.up()
    eventually("a child", lambda: len(process_records.tasks_of(agents.folder())) == 2)
    agents.kill(LEAD, keeper=True)
    eventually("the end of the task", lambda: len(process_records.tasks_of(agents.folder())) == 1)
    eventually("the end of keeper and agent", lambda: down.gone(agents.folder()))


def runs(entries: List[Dict[str, Any]]) -> List[Any]:
    return [entry["run"] for entry in entries]


def test_where_nothing_ran_nothing_is_found(tmp_path: Path) -> None:
    assert sweep(SweepRequest("h", str(tmp_path / "w"), kill=False)) == {"running": [], "found": [], "left": []}


def test_what_a_killed_run_left_is_found_and_only_ended_when_that_is_asked_for(
    run: Run, tmp_path: Path, bystander: "subprocess.Popen[bytes]"
) -> None:
    agents = run({"worker:0@localhost": CHILD})
    leave(agents)
    told = sweep(request_of(agents))
    assert runs(told["found"]) == runs(told["left"]) == [RUN]
    (entry,) = told["found"]
    assert [process["argv"] for process in entry["processes"]] == ["sleep 1000"] and len(entry["locks"]) == 2
    assert len(living_under(tmp_path)) == 1
    told = sweep(request_of(agents, kill=True))
    assert (runs(told["found"]), told["left"]) == ([RUN], [])
    assert not living_under(tmp_path) and agents.left() == []
    assert agents.folder().logs("worker:0")  # logs are no leftovers
    assert bystander.poll() is None
    assert sweep(request_of(agents))["found"] == []


def test_a_run_that_lives_is_told_and_left_alone(run: Run) -> None:
    agents = run({"worker:0@localhost": CHILD})
    agents.up()
    told = sweep(request_of(agents, kill=True))
    assert (runs(told["running"]), told["found"]) == ([RUN], [])
    assert agents.status()["state"] == "running"


def test_the_next_run_of_a_name_has_ended_what_the_one_before_left_and_is_left_alone(run: Run) -> None:
    agents = run({"worker:0@localhost": CHILD})
    leave(agents)
    answer = agents.start(run="r-20261120-130000", tasks=[])
    assert answer.get("ready"), answer
    told = sweep(request_of(agents, kill=True))
    assert (runs(told["running"]), told["found"], told["left"]) == (["r-20261120-130000"], [], [])
    assert agents.status()["state"] == "starting"


def test_a_run_of_another_host_in_a_shared_folder_is_not_this_ones(run: Run) -> None:
    agents = run({"worker:0@localhost": CHILD})
    leave(agents)
    record = agents.folder().read(process_records.AGENT)
    agents.folder().write(process_records.AGENT, {**(record or {}), "boot": "another machine's"})
    assert sweep(request_of(agents, kill=True, host="elsewhere")) == {"running": [], "found": [], "left": []}
    assert runs(sweep(request_of(agents, kill=True))["found"]) == [RUN]


def test_this_machine_is_known_under_whatever_name_a_run_had_it(run: Run) -> None:
    agents = run({"worker:0@localhost": CHILD})
    leave(agents)
    assert runs(sweep(request_of(agents, kill=True, host="its-other-name"))["found"]) == [RUN]


def test_a_lock_whose_run_has_no_folder_any_more_is_removed(tmp_path: Path) -> None:
    lock = tmp_path / "w" / "locks" / "r@h.lock"
    lock.parent.mkdir(parents=True)
    lock.write_text('{"run": "r-20261120-120000", "pid": 1}')
    (lock.parent / "r@other.lock").write_text("")
    request = SweepRequest("h", str(tmp_path / "w"), kill=False)
    (entry,) = sweep(request)["found"]
    assert (entry["run"], entry["locks"]) == (None, [str(lock)])
    assert sweep(replace(request, kill=True))["left"] == []
    assert [path.name for path in lock.parent.iterdir()] == ["r@other.lock"]


def test_code_that_came_half_is_removed_when_nobody_sends_it_any_more(tmp_path: Path) -> None:
    code = tmp_path / "w" / "code"
    for name in (".old", ".being-sent", "0123456789abcdef"):
        (code / name).mkdir(parents=True)
    past = time.time() - UNFINISHED_S - 60
    os.utime(str(code / ".old"), (past, past))
    request = SweepRequest("h", str(tmp_path / "w"), kill=False)
    assert sweep(request)["found"][0]["folders"] == [str(code / ".old")]
    assert sweep(replace(request, kill=True))["left"] == []
    assert sorted(path.name for path in code.iterdir()) == [".being-sent", "0123456789abcdef"]


def test_an_environment_that_was_never_finished_is_removed_unless_it_is_being_built(tmp_path: Path) -> None:
    half, built, whole = (Environment(tmp_path / "w", name) for name in ("half", "built", "whole"))
    for environment in (half, built, whole):
        environment.path.mkdir(parents=True)
    whole.seal()
    request = SweepRequest("h", str(tmp_path / "w"), kill=True)
    with built.held(alone=True):
        told = sweep(request)
    assert (told["found"][0]["folders"], told["left"]) == ([str(half.path)], [])
    assert not half.path.exists() and built.path.exists() and whole.path.exists()


def test_a_process_that_no_record_names_is_not_the_runs(run: Run, tmp_path: Path) -> None:
    """Not even one that has the run's name in its environment."""
    agents = run({"worker:0@localhost": CHILD})
    leave(agents)
    env = {**os.environ, "LAUNCH_RUN": RUN}
    with subprocess.Popen(["sleep", "1000"], env=env, start_new_session=True) as stranger:
        seen = inspect(stranger.pid)
        assert sweep(request_of(agents, kill=True))["left"] == []
        assert seen is not None and is_same(seen.pid, seen.start)
        stranger.kill()


def test_runs_of_every_name_are_swept(run: Run, tmp_path: Path) -> None:
    agents = run({"worker:0@localhost": CHILD})
    leave(agents)
    RunFolder(tmp_path / "w", "other-20200101-000000", LEAD).create()
    assert runs(sweep(request_of(agents, kill=True))["found"]) == [RUN]
