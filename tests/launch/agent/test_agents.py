"""Agents as hosts run them: real processes that own real tasks, the lead and a member on loopback."""

import json
import os
import resource
import signal
import socket
from dataclasses import replace
from pathlib import Path
from typing import Any, Callable

import pytest

from cluster.protocol.settings import Restart
from cluster.protocol.typed_json import from_values
from launch.agent import leftovers
from launch.agent.linux.processes import inspect
from launch.agent.linux.processes import status as status_of
from launch.agent.protocol import local_socket
from launch.agent.service import preparation
from launch.agent.state import process_records, runs
from launch.agent.state.run_folder import RunFolder
from launch.agent.wire.run_request import RunRequest
from tests.support.agent.agents import LEAD, MEMBER, RUN, Agents, wait_for
from tests.support.launch.machine import is_of_a_lease, left_in, lives, living_under
from tests.support.waiting import PATIENCE_S, eventually, let_pass

Run = Callable[..., Agents]
FOREVER = "exec sleep 1000"
STAY = "trap 'echo {name} >> {order}; exit' TERM; while :; do sleep 0.1; done"


def two_hosts(order: Path) -> Any:
    """A ps and a worker on each of two hosts, which write their names when they are told to leave."""
    tasks = ("ps:0@localhost", "worker:0@localhost", "ps:1@127.0.0.1", "worker:1@127.0.0.1")
    return {task: STAY.format(name=task.split("@")[0], order=order) for task in tasks}


# -- one host


def test_tasks_start_on_go_and_a_run_that_succeeded_leaves_only_its_files(run: Run, tmp_path: Path) -> None:
    script = f"echo here; while test ! -e {tmp_path}/go; do sleep 0.05; done"
    agents = run({"ps:0@localhost": FOREVER, "worker:0@localhost": script})
    answer = agents.start()
    assert answer == {"ready": True, "pid": answer["pid"], "ended": [], "notes": []}
    assert agents.status()["state"] == "starting" and not agents.log("worker:0")
    agents.tell({"do": "go"})
    eventually("a run that runs", lambda: agents.status()["state"] == "running")
    agents.tell({"do": "go"})  # as a launcher that connects again does
    (tmp_path / "go").touch()
    status = agents.ended()
    assert (status["state"], status["cause"]) == ("succeeded", None)
    assert [task["restarts"] for task in status["tasks"]] == [0, 0]
    assert [(task["state"], task["exit_code"]) for task in status["tasks"]] == [("stopped", -15), ("succeeded", 0)]
    assert agents.log("worker:0") == "here\n"
    assert agents.left() == [] and not living_under(tmp_path)


def test_a_failed_task_is_started_again_and_then_named_as_the_cause(run: Run) -> None:
    agents = run({"worker:0@localhost": "echo attempt $LAUNCH_ATTEMPT; exit 3"}, Restart(2, 0.01))
    agents.start()
    agents.tell({"do": "go"})
    status = agents.ended()
    assert status["state"] == "failed"
    first, last = (f"exit code 3; its last line: attempt {attempt}" for attempt in (0, 2))
    assert status["cause"] == f"worker:0@localhost (attempt 1 of 3): {first}; finally: {last}"
    assert [agents.log("worker:0", attempt) for attempt in range(3)] == [f"attempt {n}\n" for n in range(3)]
    report = agents.folder().read("report.json")
    assert report is not None and (report["state"], report["cause"]) == ("failed", status["cause"])
    (incident,) = report["incidents"]
    assert (incident["kind"], incident["lines"], incident["exit_code"]) == ("exit", ["attempt 0"], 3)
    assert [entry["attempt"] for entry in incident["followed"]] == [1, 2] and report["cause_incident"] == 1


def test_a_program_that_a_signal_has_stopped_is_killed_as_frozen_and_started_again(run: Run) -> None:
    agents = run({"worker:0@localhost": "exec sleep 1000"}, Restart(1, 0.0, frozen_s=2.0))
    agents.up()
    os.kill(agents.task("worker:0")["pid"], signal.SIGSTOP)
    task = eventually("a second attempt", lambda: agents.task("worker:0")["restarts"] and agents.task("worker:0"))
    assert task["restarts"] == 1
    (incident,) = agents.status()["incidents"]
    assert (incident["kind"], incident["signal"]) == ("frozen", "SIGKILL")
    assert incident["cause"].startswith("frozen: stopped by a signal for ")
    assert "state T:" in incident["stack"]


def test_an_agent_that_is_told_to_end_stops_the_run_in_order(run: Run, tmp_path: Path) -> None:
    order = tmp_path / "order"
    agents = run({task: script for task, script in two_hosts(order).items() if task.endswith("localhost")})
    agents.up()
    os.kill(leftovers.agent_pid(agents.folder()) or 0, signal.SIGTERM)
    status = agents.ended()
    how = "its agent received SIGTERM; continue with `launch up r.yaml`"
    assert (status["state"], status["cause"]) == ("stopped", f"localhost leaves: {how}")
    assert status["departed"] == LEAD
    assert order.read_text().split() == ["worker:0", "ps:0"]


def test_a_member_that_is_told_to_end_has_the_lead_stop_the_run_in_order(run: Run, tmp_path: Path) -> None:
    agents = run(two_hosts(tmp_path / "order"))
    agents.up()
    agent, keeper = process_records.agent_of(agents.folder(MEMBER))
    assert int(status_of(keeper.pid)["SigIgn"], 16) >> (signal.SIGTERM - 1) & 1, (
        "the keeper outlives a shutdown's signal"
    )
    for process in (keeper, agent):  # as a host that shuts down
        os.kill(process.pid, signal.SIGTERM)
    status = agents.ended()
    assert (status["state"], status["departed"]) == ("stopped", MEMBER)
    assert status["cause"] == "127.0.0.1 leaves: its agent received SIGTERM; continue with `launch up r.yaml`"
    assert status["incidents"] == [] and {task["state"] for task in status["tasks"]} == {"stopped"}
    told = (tmp_path / "order").read_text().split()
    assert (set(told[:2]), set(told[2:])) == ({"worker:0", "worker:1"}, {"ps:0", "ps:1"})
    assert agents.left() == []


def test_a_notice_on_one_host_stops_a_run_that_needs_it(run: Run, tmp_path: Path) -> None:
    agents = run(two_hosts(tmp_path / "order"))
    agents.requests[MEMBER]["notice"] = {"command": ["cat", f"{tmp_path}/row"], "every_s": 0.1}
    agents.up()
    (tmp_path / "row").write_text("row 7 goes at 9\n")
    status = agents.ended()
    cause = "127.0.0.1 leaves: notice: row 7 goes at 9; continue with `launch up r.yaml`"
    assert (status["state"], status["cause"], status["departed"]) == ("stopped", cause, MEMBER)
    assert agents.left() == []


def test_a_member_whose_tasks_are_over_leaves_an_elastic_run_soon_which_goes_on(run: Run) -> None:
    agents = run({"ps:0@localhost": FOREVER, "worker:0@localhost": FOREVER, "worker:1@127.0.0.1": "true"})
    agents.requests[LEAD]["run_plan"]["min_workers"] = 1
    agents.up()
    eventually("the end of the only task there", lambda: agents.task("worker:1")["state"] == "succeeded")
    os.kill(leftovers.agent_pid(agents.folder(MEMBER)) or 0, signal.SIGTERM)
    eventually("a host without an agent", lambda: not agents.alive(MEMBER), patience_s=60.0)
    log = agents.folder().own / "agent.log"
    eventually("a lead that knows it", lambda: "127.0.0.1: " in log.read_text())
    let_pass(0.5)  # in which nobody becomes silent: a launcher would start the agent again
    status = agents.status()
    assert (status["state"], status["departed"], status["silent"]) == ("running", None, [])
    agents.tell({"do": "kill", "reason": "enough"})
    assert agents.ended()["state"] == "stopped"


def test_commands_after_the_tasks_run_on_every_host_and_down_waits_for_them_and_reports_those_that_fail(
    run: Run, tmp_path: Path
) -> None:
    order, seen = tmp_path / "order", tmp_path / "seen"
    agents = run(
        two_hosts(order), after=[f"sleep 1; echo $LAUNCH_RUN $(sort {order} | tr '\n' ' ') >> {seen}", "exit 3"]
    )
    agents.up()
    assert [agents.down(host)["after"] for host in (LEAD, MEMBER)] == ["`exit 3`: exit code 3"] * 2
    first, last = seen.read_text().splitlines()
    assert last == f"{RUN} ps:0 ps:1 worker:0 worker:1" and first.startswith(RUN)
    assert agents.status()["state"] == "stopped" and agents.left() == []


def test_an_agent_that_is_killed_among_the_commands_after_its_tasks_leaves_none_of_them(
    run: Run, tmp_path: Path
) -> None:
    agents = run({"worker:0@localhost": "true"}, after=["echo $$ > shell; sleep 1000 & wait"])
    agents.start()
    agents.tell({"do": "go"})
    shell = int(wait_for(agents.folder().own / "shell"))
    eventually("its child", lambda: len(agents.look()["processes"]) == 4)
    agents.kill(LEAD, keeper=True)
    assert (agents.down()["processes"], agents.down()["after"]) == ([], None)
    assert not lives(shell) and not living_under(tmp_path)


def test_a_second_signal_to_a_lead_waits_for_nothing(run: Run) -> None:
    stubborn = "trap : TERM; while :; do sleep 1000 & wait; done"
    agents = run({"worker:0@localhost": stubborn}, grace_s=1000.0)
    agents.up()
    pid = leftovers.agent_pid(agents.folder()) or 0
    os.kill(pid, signal.SIGTERM)
    eventually("the first signal's effect", lambda: agents.status()["departed"])
    os.kill(pid, signal.SIGTERM)
    status = agents.ended()
    assert (status["state"], [task["exit_code"] for task in status["tasks"]]) == ("stopped", [-9])


def test_a_child_that_fled_into_a_session_of_its_own_is_ended_with_the_run(run: Run, tmp_path: Path) -> None:
    fled = "setsid sh -c 'echo $$ > fled; exec sleep 1000' & while test ! -s fled; do sleep 0.05; done"
    agents = run({"worker:0@localhost": fled})
    agents.start()
    agents.tell({"do": "go"})
    assert agents.ended()["state"] == "succeeded"
    pid = int(wait_for(agents.folder().task("worker:0") / "work" / "fled"))
    assert inspect(pid) is None


def test_a_second_run_of_a_name_is_refused_with_the_first_ones(run: Run) -> None:
    agents = run({"worker:0@localhost": FOREVER})
    agents.up()
    answer = agents.start(run="r-20261120-130000")
    up = f"{agents.status()['run']} is already up"
    assert answer == {"error": f"{up}; see it with `launch status r.yaml`, end it with `launch down r.yaml`"}
    assert agents.status()["state"] == "running"


def test_a_successor_that_is_refused_hears_why_also_where_another_run_of_its_name_is_up(run: Run) -> None:
    agents = run({"worker:0@localhost": FOREVER})
    former = RunFolder(agents.workdir, "r-20261119-120000", LEAD)
    former.create()
    runs.end_for_good(agents.reference(run=former.run), "launch down")
    agents.up()
    answer = agents.start(run="r-20261120-130000", follows=former.run)
    refusal = f"{former.run} was ended here by launch down, so no run succeeds it"
    assert answer == {"error": refusal, "kind": "ended"} and agents.status()["state"] == "running"


@pytest.mark.parametrize("found", ["as it starts", "when its agent is on record"])
def test_no_run_succeeds_one_that_a_user_has_ended_and_nothing_of_it_stays(
    found: str, run: Run, tmp_path: Path
) -> None:
    agents = run({"worker:0@localhost": FOREVER})
    former = RunFolder(agents.workdir, "r-20261119-120000", LEAD)
    former.create()
    runs.end_for_good(agents.reference(run=former.run), "launch down")
    refusal = f"{former.run} was ended here by launch down, so no run succeeds it"
    if found == "as it starts":
        assert agents.start(follows=former.run) == {"error": refusal, "kind": "ended"}
    else:
        request = replace(from_values(RunRequest, agents.requests[LEAD]), follows=former.run)
        agents.folder().create()
        keeper = inspect(os.getppid())
        assert keeper is not None
        with pytest.raises(runs.EndedForGood, match=refusal):
            preparation._record(request, request, agents.folder(), keeper)
        preparation.forget(request, agents.folder())
    assert [path.name for path in (agents.workdir / "runs").iterdir()] == [former.run]
    assert "ready" in agents.start(again=True, follows=former.run)  # it had begun before


def test_taken_ports_and_missing_programs_are_all_named_and_nothing_stays(run: Run, tmp_path: Path) -> None:
    agents = run({"worker:0@localhost": "true", "worker:1@localhost": "true"})
    agents.requests[LEAD]["tasks"][1]["argv"] = ["no-such-program"]
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen(1)
        port = taken.getsockname()[1]
        agents.requests[LEAD]["tasks"][0]["port"] = port
        error = agents.start()["error"]
    assert error.startswith(f"port {port} of worker:0 is taken by pid {os.getpid()} (")
    way = "end it, or train beside it with `launch up --local r.yaml`, which takes free ports"
    assert error.endswith(f"{way}; no program no-such-program on this host")
    assert left_in(tmp_path) == [] and not list(tmp_path.rglob("r-*"))


def test_a_container_without_its_image_is_refused_and_nothing_stays(run: Run, tmp_path: Path) -> None:
    agents = run({"worker:0@localhost": "true"})
    agents.requests[LEAD]["tasks"][0]["argv"] = ["only-in-the-image"]
    agents.requests[LEAD]["container"] = {"image": f"{tmp_path}/t.sif"}
    assert agents.start()["error"].startswith("container.")
    assert left_in(tmp_path) == [] and not list(tmp_path.rglob("r-*"))


def test_a_program_beside_the_hosts_file_is_found(run: Run, tmp_path: Path) -> None:
    agents = run({"worker:0@localhost": ""})
    program = tmp_path / "w" / "code" / "0123456789abcdef" / "train.sh"
    program.write_text("#!/bin/sh\necho trained\n")
    program.chmod(0o755)
    agents.requests[LEAD]["tasks"][0]["argv"] = ["./train.sh"]
    assert agents.start().get("ready")
    agents.tell({"do": "go"})
    assert agents.ended()["state"] == "succeeded"
    assert agents.log("worker:0") == "trained\n"


def test_a_program_is_looked_for_on_the_path_that_the_task_gets(run: Run, tmp_path: Path) -> None:
    agents = run({"worker:0@localhost": ""})
    program = tmp_path / "bin" / "train"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\necho trained\n")
    program.chmod(0o755)
    agents.requests[LEAD]["tasks"][0].update(argv=["train"], env={"PATH": f"{tmp_path}/bin:/usr/bin:/bin"})
    assert agents.start().get("ready")
    agents.tell({"do": "go"})
    assert agents.ended()["state"] == "succeeded"


def test_an_agent_may_open_as_many_files_as_the_system_lets_it_and_its_tasks_as_many_as_before(run: Run) -> None:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    agents = run({"worker:0@localhost": "ulimit -n; exec sleep 1000"})
    resource.setrlimit(resource.RLIMIT_NOFILE, (before[1] // 2, before[1]))
    try:
        agents.up()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    agent = agents.folder().read("agent.json") or {}
    assert resource.prlimit(agent["agent"]["pid"], resource.RLIMIT_NOFILE) == (before[1], before[1])
    eventually("the task's own limit", lambda: agents.log("worker:0") == f"{before[1] // 2}\n")


def test_a_request_with_a_wrong_value_is_refused_and_its_field_named(run: Run, tmp_path: Path) -> None:
    agents = run({"worker:0@localhost": "true"})
    agents.requests[LEAD]["tasks"][0]["port"] = "many"
    assert agents.start() == {
        "error": "expected a request of this version, found tasks[0].port: expected a whole number, found a text; "
        "start again with the launcher version that sent this code"
    }
    assert not list(tmp_path.rglob("r-*"))


def test_a_gpu_that_is_not_there_is_refused(run: Run, tmp_path: Path) -> None:
    agents = run({"worker:0@localhost": "true"})
    agents.requests[LEAD]["tasks"][0]["gpus"] = [97]
    assert agents.start()["error"].startswith("worker:0: expected GPU 97, found ")
    assert left_in(tmp_path) == []


def test_a_resume_with_nothing_to_resume_is_refused(run: Run, tmp_path: Path) -> None:
    agents = run({"worker:0@localhost": "true"}, resume=True)
    lead = agents.requests[LEAD]  # of a job: what a program continues from is its own
    lead["code"]["launcher"], lead["tasks"][0]["folder"] = lead["code"]["job"], "launcher"
    assert agents.start()["error"].startswith("nothing to resume: no earlier run of r ")
    assert left_in(tmp_path) == []


def test_a_run_folder_that_cannot_be_made_is_named(run: Run, tmp_path: Path) -> None:
    agents = run({"worker:0@localhost": "true"})
    (tmp_path / "w" / "runs").touch()
    error = agents.start()["error"]
    assert error == f"cannot make the run's folder {agents.folder().own}: Not a directory"


TALKS = """exec python3 -c "
import socket, threading, time
with socket.socket() as listener:
    listener.bind(('127.0.0.1', 0))
    listener.listen(1)
    one = socket.create_connection(listener.getsockname())
    other, _ = listener.accept()
def talk():
    while True:
        one.sendall(bytes(1000))
        time.sleep(0.01)
threading.Thread(target=talk).start()
while other.recv(1000): pass
"
"""


def test_what_tasks_use_of_the_network_is_told_of_every_host(run: Run) -> None:
    agents = run({"worker:0@localhost": TALKS, "worker:1@127.0.0.1": TALKS, "worker:2@127.0.0.1": FOREVER})
    agents.up()

    def rates() -> Any:
        tasks = [agents.task(f"worker:{index}") for index in range(3)]
        return [(task["bytes_in_per_second"], task["bytes_out_per_second"]) for task in tasks]

    talking = eventually("rates", lambda: all(rate is not None for task in rates() for rate in task) and rates())
    assert all(into > 1000 and out > 1000 for into, out in talking[:2])
    assert talking[2] == (0, 0)
    assert [agents.task(f"worker:{index}")["gpu_percent"] for index in range(3)] == [None] * 3


def test_a_secret_is_in_no_file_of_the_run(run: Run, tmp_path: Path) -> None:
    agents = run({"worker:0@localhost": "echo ${#PASSWORD}; exec sleep 1000"}, secrets={"PASSWORD": "hunter2-hunter2"})
    agents.up()
    eventually("its output", lambda: agents.log("worker:0") == "15\n")
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert files and not [path for path in files if b"hunter2" in path.read_bytes()]


# -- the launcher's lease


def test_a_run_whose_launcher_falls_silent_is_stopped_when_its_lease_ends(run: Run, tmp_path: Path) -> None:
    agents = run({"worker:0@localhost": FOREVER}, lease_s=0.3)
    agents.start()
    agents.tell({"do": "go"})
    status = agents.ended()  # nothing was asked of it meanwhile
    assert status["state"] == "stopped"
    assert is_of_a_lease(status["cause"])
    assert not living_under(tmp_path)


def test_a_detached_run_has_no_lease(run: Run, tmp_path: Path) -> None:
    agents = run({"worker:0@localhost": f"while test ! -e {tmp_path}/go; do sleep 0.05; done"}, lease_s=1.0)
    agents.start()
    assert local_socket.ask_agent(agents.folder().own, {"do": "detach"}) == {"detached": True}
    agents.tell({"do": "go"})
    with pytest.raises(AssertionError):
        eventually("an end before its time", lambda: not agents.alive(LEAD), patience_s=1.5)
    (tmp_path / "go").touch()
    assert agents.ended()["state"] == "succeeded"


def test_a_launcher_that_pauses_is_not_missed_until_its_next_beat(run: Run) -> None:
    agents = run({"worker:0@localhost": FOREVER}, lease_s=0.3)
    agents.start()
    with local_socket.connect(agents.folder().own, PATIENCE_S) as agent, agent.makefile("rb") as replies:
        agent.sendall(b'{"do": "go"}\n{"do": "pause"}\n')  # as one: no busy machine comes between them
        assert json.loads(replies.readline().decode()) == {"paused": True}
    with pytest.raises(AssertionError):
        eventually("an end before its time", lambda: not agents.alive(LEAD), patience_s=1.0)
    agents.tell({"do": "beat"})
    assert is_of_a_lease(agents.ended()["cause"])


def test_a_lease_begins_when_the_launcher_says_go_however_long_other_hosts_take_to_start(run: Run) -> None:
    agents = run({"worker:0@localhost": FOREVER}, lease_s=0.3)
    agents.start()
    with pytest.raises(AssertionError):
        eventually("an end before its time", lambda: not agents.alive(LEAD), patience_s=1.0)
    agents.tell({"do": "go"})
    assert is_of_a_lease(agents.ended()["cause"])


def test_a_launcher_that_beats_before_it_says_go_has_its_lease_from_then_on(run: Run) -> None:
    agents = run({"worker:0@localhost": FOREVER}, lease_s=0.3)
    agents.start()
    agents.tell({"do": "beat"})
    status = agents.ended()
    assert (status["state"], status["tasks"][0]["pid"]) == ("stopped", None)
    assert is_of_a_lease(status["cause"])


# -- two hosts


def test_a_run_on_two_hosts_stops_every_worker_before_any_ps(run: Run, tmp_path: Path) -> None:
    order = tmp_path / "order"
    agents = run(two_hosts(order))
    agents.up()
    agents.tell({"do": "stop", "reason": "enough"})
    status = agents.ended()
    assert (status["state"], status["cause"]) == ("stopped", "enough")
    told = order.read_text().split()
    assert (set(told[:2]), set(told[2:])) == ({"worker:0", "worker:1"}, {"ps:0", "ps:1"})
    assert agents.left() == [] and not living_under(tmp_path)


def test_a_kill_ends_tasks_that_ignore_a_stop_on_every_host(run: Run, tmp_path: Path) -> None:
    stubborn = "trap : TERM; while :; do sleep 1000 & wait; done"
    agents = run({"worker:0@localhost": stubborn, "worker:1@127.0.0.1": stubborn}, grace_s=1000.0)
    agents.up()
    agents.tell({"do": "stop", "reason": "enough"})
    agents.tell({"do": "kill", "reason": "now"})
    status = agents.ended()
    assert (status["state"], status["cause"]) == ("stopped", "enough")
    assert [task["exit_code"] for task in status["tasks"]] == [-9, -9]


def test_a_host_whose_agent_dies_is_lost_and_the_run_fails_for_it(run: Run, tmp_path: Path) -> None:
    agents = run(two_hosts(tmp_path / "order"), lost_after_s=2.0)
    agents.up()
    agents.kill(MEMBER)
    status = agents.ended()
    assert status["state"] == "failed"
    assert status["cause"].startswith("127.0.0.1: no message for ")
    states = {f"{task['role']}:{task['index']}": task["state"] for task in status["tasks"]}
    assert states == {"ps:0": "stopped", "worker:0": "stopped", "ps:1": "lost", "worker:1": "lost"}
    assert not living_under(tmp_path)


def test_when_the_lead_dies_the_members_end_their_tasks_and_leave(run: Run, tmp_path: Path) -> None:
    agents = run(two_hosts(tmp_path / "order"), lost_after_s=2.0, stay_s=0.5)
    agents.up()
    agents.kill(LEAD)
    status = agents.ended()
    assert status["state"] == "failed" and status["cause"].startswith("the agent on localhost ended after ")
    assert {task["state"] for task in status["tasks"]} == {"lost"}
    assert not living_under(tmp_path)


def test_a_member_that_would_wait_long_leaves_soon_where_the_lead_s_host_says_that_nobody_leads(
    run: Run, tmp_path: Path
) -> None:
    agents = run(two_hosts(tmp_path / "order"), lost_after_s=2.0, stay_s=1e6, deserted_s=0.5)
    agents.up()
    agents.kill(LEAD)
    eventually("a host without the run", lambda: not living_under(tmp_path))
    assert "no lead agent on localhost" in (agents.folder(MEMBER).own / "agent.log").read_text()


def test_a_member_that_cannot_reach_the_lead_fails_the_run_and_leaves(run: Run, tmp_path: Path) -> None:
    agents = run(two_hosts(tmp_path / "order"), join_s=0.5)
    agents.start(LEAD)
    agents.start(MEMBER, lead={"host": LEAD, "address": "127.0.0.1:1"})
    agents.tell({"do": "go"})
    status = agents.ended()
    assert (status["state"], [task["pid"] for task in status["tasks"]]) == ("failed", [None] * 4)
    assert status["cause"].startswith("127.0.0.1: its agent has not reached the lead agent at ")


def test_a_member_that_does_not_know_the_token_is_no_member(run: Run, tmp_path: Path) -> None:
    agents = run(two_hosts(tmp_path / "order"), join_s=1.0)
    agents.start(LEAD)
    agents.start(MEMBER, token="another")
    agents.tell({"do": "go"})
    assert agents.ended()["state"] == "failed"
    assert "the caller does not know the run's token" in (agents.folder().own / "agent.log").read_text()


def test_a_lead_is_reached_by_an_address_of_ipv6_too(run: Run) -> None:
    agents = run({"worker:0@localhost": "true", "worker:1@127.0.0.1": "true"})
    port = agents.requests[LEAD]["lead"]["address"].rsplit(":", 1)[1]
    for request in agents.requests.values():
        request["lead"]["address"] = f"[::1]:{port}"
    agents.start(LEAD)
    agents.start(MEMBER)
    agents.tell({"do": "go"})
    assert agents.ended()["state"] == "succeeded"


def test_a_control_port_that_is_taken_is_named(run: Run, tmp_path: Path) -> None:
    agents = run(two_hosts(tmp_path / "order"))
    with socket.socket() as taken:
        taken.bind(("0.0.0.0", 0))
        taken.listen(1)
        port = taken.getsockname()[1]
        error = agents.start(LEAD, lead={"host": LEAD, "address": f"127.0.0.1:{port}"})["error"]
    assert error.startswith("cannot listen: ") and str(port) in error
    assert left_in(tmp_path) == [] and not agents.folder().path.exists()
