"""The other verbs on this machine: a run that was left alone is seen, read and ended; what is wrong is said."""

import json
import re
import signal
import subprocess
import sys
from datetime import datetime, tzinfo
from pathlib import Path
from typing import Iterator, List, Optional

import pytest

from launch import cli
from launch.run import lifecycle
from tests.support import ROOT
from tests.support.launch.launcher import LAUNCH, Launcher, finish
from tests.support.waiting import PATIENCE_S, eventually

CONTRACT = {
    "run", "name", "state", "global_step", "steps", "steps_per_second", "examples_per_second", "loss",
    "checkpoint_step", "tasks",
}  # fmt: skip
TASK = {
    "role", "index", "host", "address", "gpus", "state", "pid", "exit_code", "restarts", "step", "step_time_ms", "log",
    "cause",
}  # fmt: skip


# Verbs that a hosts file alone is enough for.
OF_A_FILE = [
    name
    for name, verb in sorted(cli.verbs().items())
    if "file" in {each.name for each in verb.params} and not any(each.required for each in verb.params)
]


@pytest.fixture
def detached(launch: Launcher) -> Iterator[Launcher]:
    """A run that goes on without its launcher; it is ended with the test."""
    yield from begun(launch)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Launcher]:
    """One such run for all tests that only look at it."""
    yield from begun(Launcher(tmp_path_factory.mktemp("shared")))


def begun(launch: Launcher) -> Iterator[Launcher]:
    launch.stay()
    ran = launch("up", "-d")
    assert ran.returncode == 0, ran.stderr
    eventually("every task", launch.all_up)
    yield launch
    launch.end()


# -- a detached run


def test_a_detached_up_returns_when_every_task_is_up_and_says_what_to_do_next(launch: Launcher) -> None:
    launch.stay()
    ran = launch("up", "-d")
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout.splitlines()[-3:] == [
        f"{launch.run_folder().name} is up; see it with `launch status {launch.file}`, "
        f"end it with `launch down {launch.file}`",
        "a reboot of this machine ends the run",
        f"then start it again with `launch down {launch.file}` and `launch up {launch.file}`",
    ]
    assert launch.status()["state"] == "running"
    launch.end()


def test_a_detached_up_of_a_run_that_fails_at_once_is_a_failure(launch: Launcher) -> None:
    """On a busy machine all tasks may have started before one has ended; then the run is up for a moment."""
    launch.write("exit 3")
    tries = (launch("up", "-d") for _ in range(3))
    ran = next(each for each in tries if each.returncode != 0)
    assert ran.returncode == 1
    assert "exit code 3" in ran.stdout and launch.left() == []


def test_a_run_is_seen_as_json_in_the_contracts_terms(shared: Launcher) -> None:
    ran = shared("status", "--json")
    assert (ran.returncode, ran.stderr, ran.stdout.count("\n")) == (0, "", 1)
    status = json.loads(ran.stdout)
    assert set(status) >= CONTRACT and set(status["tasks"][0]) >= TASK
    assert (status["run"], status["name"], status["state"]) == (shared.run_folder().name, "r", "running")
    assert [f"{task['role']}:{task['index']}" for task in status["tasks"]] == ["ps:0", "worker:0", "worker:1"]
    worker = status["tasks"][1]
    assert Path(worker["log"]).read_text() == "up\n"
    assert Path(f"/proc/{worker['pid']}/environ").read_bytes().count(b"LAUNCH_RUN=" + status["run"].encode()) == 1


def test_a_run_is_seen_as_a_table(shared: Launcher) -> None:
    ran = shared("status")
    assert ran.returncode == 0
    traffic = r"( +[\d,.]+ \w+){0,2}"  # once it is known
    row = rf"^worker:1 +localhost +running .* localhost:{shared.ports[2]}{traffic} *$"
    assert re.search(row, ran.stdout, re.MULTILINE)


def test_a_run_is_watched_to_its_end(detached: Launcher) -> None:
    watcher = detached.begin("status", "--watch")
    assert watcher.stdout is not None and watcher.stdout.readline().endswith("running: 3 running\n")
    detached.end()
    ran = finish(watcher)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert "stopped: " in ran.stdout and ran.stdout.endswith("cause: launch down\n")
    assert detached("status", "--watch").stdout.endswith("cause: launch down\n")


def test_ctrl_c_ends_the_watching_and_not_the_run(shared: Launcher) -> None:
    watcher = shared.begin("status", "--watch")
    assert watcher.stdout is not None and watcher.stdout.readline()
    watcher.send_signal(signal.SIGINT)
    assert finish(watcher).returncode == 128 + signal.SIGINT
    assert shared.status()["state"] == "running"


def test_to_watch_as_json_is_refused(launch: Launcher) -> None:
    launch.write()
    ran = launch("status", "--watch", "--json")
    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr.startswith("--watch: expected no --json, ")


def test_a_second_up_of_the_name_is_refused_with_the_run_that_holds_it(shared: Launcher) -> None:
    ran = shared("up")
    assert ran.returncode == 3
    assert f"localhost: {shared.run_folder().name} is already up; " in ran.stderr
    assert re.findall("`([^`]*)`", ran.stderr)[:2] == [f"launch status {shared.file}", f"launch down {shared.file}"]
    assert shared.status()["state"] == "running"


class Frozen(datetime):
    """A clock that stands still, so that all runs begin in one second."""

    @classmethod
    def now(cls, tz: Optional[tzinfo] = None) -> "Frozen":
        return cls(2026, 1, 1, tzinfo=tz)


def test_runs_that_begin_in_one_second_have_names_of_their_own(
    launch: Launcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lifecycle, "datetime", Frozen)
    launch.write("exit 0")
    for second in range(3):
        assert f"r-20260101-00000{second}" in launch("up").stdout
    launch.stay()
    assert launch("up", "-d").returncode == 0
    ran = launch("up")
    assert ran.returncode == 3
    assert "localhost: r-20260101-000003 is already up; " in ran.stderr
    launch.end()


def test_logs_of_every_task_are_printed_with_where_they_are_from(shared: Launcher) -> None:
    ran = shared("logs", "--raw")
    assert (ran.returncode, ran.stderr) == (0, "")
    assert sorted(ran.stdout.splitlines()) == [f"{task}@localhost up" for task in ("ps:0", "worker:0", "worker:1")]
    of_a_role = sorted(shared("logs", "--raw", "worker:*").stdout.splitlines())
    assert of_a_role == [f"worker:{index}@localhost up" for index in range(2)]


def test_logs_are_of_a_time_and_tell_it_where_that_is_asked_for(shared: Launcher) -> None:
    timed = r"20\d\d-\d\d-\d\d \d\d:\d\d:\d\d ps:0@localhost up\n"
    assert re.fullmatch(timed, shared("logs", "ps:0", "--times").stdout)
    assert shared("logs", "ps:0", "--since", "1h").stdout == "ps:0@localhost up\n"
    assert shared("logs", "--until", "1h").stdout == ""
    assert shared("logs", "--tail", "0").stdout == ""
    refused = shared("logs", "--since", "yesterday")
    assert refused.returncode == 2 and refused.stderr.startswith("TIME: expected 30s, 10m, 2h or 1d (ago), ")
    refused = shared("logs", "-f", "--until", "1h")
    assert refused.returncode == 2 and refused.stderr.startswith("--until: expected no --follow")


def test_logs_of_a_run_that_failed_begin_with_the_first_cause(launch: Launcher) -> None:
    launch.write("echo up; case $LAUNCH_TASK_DIR in *worker.1) exit 3;; esac; exec sleep 1000")
    assert launch("up").returncode == 1
    lines = launch("logs").stdout.splitlines()
    assert lines[0] == "first cause: worker:1@localhost: exit code 3; its last line: up"
    assert lines[1].startswith("last lines of localhost:/") and lines[2] == "  worker:1@localhost up"
    assert lines[3] == "every line, by time:" and lines[4].endswith(" up")
    assert launch("logs", "--raw").stdout.startswith(("ps", "worker"))


def test_logs_that_are_followed_end_with_the_run(detached: Launcher) -> None:
    follower = detached.begin("logs", "-f", "worker:0")
    assert follower.stdout is not None and follower.stdout.readline() == "worker:0@localhost up\n"
    detached.end()
    assert finish(follower).returncode == 0


def test_who_no_longer_reads_the_logs_ends_them_quietly(launch: Launcher) -> None:
    launch.write("seq 1 20000")
    assert launch("up").returncode == 0
    reader = launch.begin("logs")
    assert reader.stdout is not None
    reader.stdout.readline()
    reader.stdout.close()
    reader.wait(PATIENCE_S)
    assert reader.stderr is not None
    with reader.stderr:
        assert reader.stderr.read() == ""


def test_down_ends_the_run_in_order_and_proves_that_nothing_is_left(detached: Launcher) -> None:
    ran = detached("down")
    run = detached.run_folder().name
    assert ran.returncode == 0
    assert ran.stdout.startswith(f"localhost: {run}: ") and ran.stdout.endswith(
        "; no process, port, GPU memory, lock, control group or container left\n"
    )
    told = detached.order.read_text().split()
    assert (set(told[:2]), told[2]) == ({"worker:0", "worker:1"}, "ps:0")
    assert detached.left() == []
    status = detached.status()
    assert (status["state"], status["cause"]) == ("stopped", "launch down")


def test_down_tells_as_json_what_there_was_and_what_is_left(detached: Launcher) -> None:
    pids = {task["pid"] for task in detached.status()["tasks"]}
    ran = detached("down", "--json")
    assert (ran.returncode, ran.stderr, ran.stdout.count("\n")) == (0, "", 1)
    told = json.loads(ran.stdout)
    assert told["clean"] is True
    (host,) = told["hosts"]
    assert (host["host"], host["processes"], host["ports"], host["locks"]) == ("localhost", [], [], [])
    assert pids < {process["pid"] for process in host["ended"]["processes"]}


def test_a_second_down_finds_nothing_and_is_no_error(detached: Launcher) -> None:
    detached.end()
    ran = detached("down")
    assert ran.returncode == 0
    assert ran.stdout.endswith(
        ": nothing was there; no process, port, GPU memory, lock, control group or container left\n"
    )


# -- no run


def test_a_run_that_never_was_has_no_status(launch: Launcher) -> None:
    launch.write()
    ran = launch("status")
    assert ran.returncode == 2
    assert ran.stderr == (
        f"{launch.file}: no run of this name has been on localhost; start one with `launch up {launch.file}`\n"
    )


def test_a_run_that_never_was_has_no_logs_and_nothing_to_end(launch: Launcher) -> None:
    launch.write()
    assert launch("logs").stderr == "localhost: no run of this name has been on this host\n"
    ran = launch("down")
    assert (ran.returncode, ran.stdout) == (0, "localhost: no run of this name has been here\n")


# -- plan


def test_a_plan_reaches_no_host_and_is_json(launch: Launcher) -> None:
    launch.had_verbs = False
    launch.write(command=["train", "{role}", "{index}"], cluster={"ps": ["cpu01"], "worker": ["gpu[01-02]"]})
    ran = launch("plan", "--json")
    assert (ran.returncode, ran.stderr, ran.stdout.count("\n")) == (0, "", 1)
    plan = json.loads(ran.stdout)
    assert [task["argv"] for task in plan["tasks"]] == [["train", "ps", "0"], ["train", "worker", "0"],
                                                        ["train", "worker", "1"]]  # fmt: skip
    assert all(
        {"role", "index", "host", "address", "gpus", "argv", "env", "log"} <= set(task) for task in plan["tasks"]
    )
    assert not launch.workdir.exists()


def test_a_plan_for_a_person_is_a_table(launch: Launcher) -> None:
    launch.write(cluster={"worker": ["gpu[01-02]"]})
    lines = launch("plan").stdout.splitlines()
    assert lines[0].endswith(": 2 tasks on gpu[01-02]; lead agent on gpu01")
    assert lines[3].split()[:3] == ["worker:[0-1]", "gpu[01-02]", "gpu[01-02]:2222"]


def test_a_plan_of_named_tasks_shows_them_whole_and_in_json_them_alone(launch: Launcher) -> None:
    launch.write(command=["train", "{index}"], cluster={"worker": ["gpu[01-03]"]})
    lines = launch("plan", "gpu02").stdout.splitlines()
    assert lines[0] == "worker:1 on gpu02" and "  command  train 1" in lines
    plan = json.loads(launch("plan", "worker:2", "--json").stdout)
    assert [(task["role"], task["index"]) for task in plan["tasks"]] == [("worker", 2)]


def test_a_plan_of_a_task_that_is_not_there_is_refused(launch: Launcher) -> None:
    launch.write(cluster={"worker": ["gpu[01-02]"]})
    ran = launch("plan", "worker:2")
    assert (ran.returncode, ran.stdout) == (2, "")
    assert "found 'worker:2'" in ran.stderr


# -- the command line


def run_main(capsys: "pytest.CaptureFixture[str]", *arguments: str) -> List[object]:
    """[exit code, stdout, stderr] of a command line."""
    with pytest.raises(SystemExit) as caught:
        cli.main(list(arguments))
    said = capsys.readouterr()
    return [caught.value.code, said.out, said.err]


@pytest.mark.parametrize("verb", sorted(cli.VERBS))
def test_every_verb_explains_itself_with_an_example(verb: str, capsys: "pytest.CaptureFixture[str]") -> None:
    code, out, _ = run_main(capsys, verb, "-h")
    assert code == 0
    assert f"Example:  launch {verb} " in str(out)


@pytest.mark.parametrize(
    "arguments",
    [["up", "a.yaml", "b"], ["up", "a.yaml", "--no-such-option"], ["launch-it"], ["plan", "a.yaml", "--nic-gbps", "0"]],
)
def test_a_wrong_command_line_is_refused_with_exit_code_2(
    arguments: List[str], capsys: "pytest.CaptureFixture[str]"
) -> None:
    code, out, err = run_main(capsys, *arguments)
    assert (code, out) == (2, "")
    assert str(err).startswith("Usage: launch")


@pytest.mark.parametrize("verb", OF_A_FILE)
def test_a_hosts_file_that_is_not_there_is_refused_by_every_verb(
    verb: str, tmp_path: Path, capsys: "pytest.CaptureFixture[str]"
) -> None:
    code, out, err = run_main(capsys, verb, str(tmp_path / "none.yaml"))
    assert (code, out) == (2, "")
    assert str(tmp_path / "none.yaml") in str(err)


def test_a_mistake_in_the_file_is_refused_with_its_line_and_nothing_is_started(
    launch: Launcher, capsys: "pytest.CaptureFixture[str]"
) -> None:
    launch.file.write_text("comand: [a]\ncluster: {worker: [localhost]}\n")
    code, _, err = run_main(capsys, "up", str(launch.file))
    assert code == 2
    assert f"{launch.file}:1:1: comand: expected a key of a hosts file, found the unknown key 'comand'" in str(err)


def test_a_mistake_on_the_command_line_is_refused_with_its_key(
    launch: Launcher, capsys: "pytest.CaptureFixture[str]"
) -> None:
    launch.write()
    code, _, err = run_main(capsys, "plan", str(launch.file), "--set", "train.steps=many")
    assert code == 2
    assert "--set train.steps: expected a whole number of at least 1, found 'many'" in str(err)


def test_a_job_that_is_not_there_is_refused(launch: Launcher, capsys: "pytest.CaptureFixture[str]") -> None:
    launch.write(command=None, job="no_such_job")
    code, _, err = run_main(capsys, "up", str(launch.file))
    assert code == 2
    assert re.match(rf"{launch.file}:\d+:\d+: job: expected a file, found none at ", str(err))


def test_a_task_that_is_not_there_is_refused(launch: Launcher, capsys: "pytest.CaptureFixture[str]") -> None:
    launch.write()
    code, _, err = run_main(capsys, "logs", str(launch.file), "worker:9")
    assert code == 2
    assert str(err).startswith("TASK: expected a task, ROLE:* or a host among ps:0, worker:0, worker:1, localhost; ")


def test_the_version_is_told() -> None:
    ran = subprocess.run([*LAUNCH, "--version"], stdout=subprocess.PIPE, cwd=str(ROOT), timeout=PATIENCE_S)
    assert ran.returncode == 0 and ran.stdout.startswith(b"launch, version ")


def test_a_local_run_loads_no_ssh(launch: Launcher) -> None:
    launch.write()
    script = "import sys, launch.cli as c\ntry: c.main()\nfinally: print('fabric' in sys.modules)"
    ran = finish(launch.begin("up", program=[sys.executable, "-c", script]))
    assert ran.stdout.splitlines()[-1] == "False"
    eventually("nothing left", lambda: not launch.left())
