"""Tasks in containers of a stand-in for the runtimes: ended, watched and proven gone, whoever is their parent."""

import os
import signal
from pathlib import Path
from typing import Callable, Optional

import pytest

from launch.agent import leftovers
from launch.agent.containers import task_containers
from launch.agent.containers.command import RunContainers
from launch.agent.linux import processes
from launch.agent.protocol.messages import Dismiss, Exited
from launch.agent.state import process_records
from tests.support.agent.bench import Bench
from tests.support.containers.fake import FakeRuntime
from tests.support.launch.machine import lives
from tests.support.waiting import eventually

pytestmark = pytest.mark.not_fast  # starts a stand-in for a runtime, and what it runs
LASTS = "echo up; trap 'echo asked; exit 7' TERM; while :; do sleep 0.05; done"


@pytest.fixture
def docker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeRuntime:
    return FakeRuntime(tmp_path / "bin", "docker", monkeypatch)


@pytest.fixture
def boxed(bench: Bench) -> Callable[[FakeRuntime, str], int]:
    """Start a script in a container, and return the pid of its process there."""

    def start(runtime: FakeRuntime, script: str) -> int:
        bench.start(
            "sh", "-c", script, container=container_of(runtime), env={"NOTE": "a $$HOME in $HOME"}, secrets={"KEY": "s"}
        )
        bench.logged("up")
        pid: int = eventually("the process inside", lambda: _inside(bench))
        return pid

    return start


def container_of(runtime: FakeRuntime) -> RunContainers:
    return RunContainers(runtime.program.name, str(runtime.program), "there", (), (), (os.geteuid(), os.getegid()))


def _inside(bench: Bench) -> Optional[int]:
    bench.now += process_records.NOTE_S
    bench.tasks.poll(bench.now)
    attempt = bench.tasks.running["worker:0"]
    return attempt.kin.first and attempt.pid


def test_a_task_ends_by_sigterm_and_its_container_is_gone_before_anybody_learns_of_it(
    bench: Bench, docker: FakeRuntime, boxed: Callable[[FakeRuntime, str], int]
) -> None:
    pid = boxed(docker, LASTS)
    (name,) = docker.names
    assert (docker.pid(name), process_records.container_names(bench.folder)) == (pid, [name])
    assert name.startswith(f"launch.{bench.folder.run}.worker.0.0.{os.getpid()}.")
    found = processes.environment(pid)
    assert (found["NOTE"], found["KEY"], found["LAUNCH_CONTAINER"]) == ("a $HOME in ", "s", name)
    assert found["LAUNCH_PROGRESS"] == str(bench.folder.task("worker:0") / "progress.jsonl")
    assert processes.inspect(pid).parent not in (os.getpid(), bench.tasks.running["worker:0"].process.pid)  # type: ignore
    others = (bench.folder.read(process_records.TASKS) or {})["others"]
    assert pid in [process["pid"] for process in others]
    bench.tasks.stop("worker:0", 60.0, bench.now)
    exited = bench.comes(Exited)
    assert exited.exit_code == 7 and bench.folder.log("worker:0", 0).read_text().count("asked") == 1
    assert (docker.names, process_records.container_names(bench.folder)) == ([], [])


def test_a_task_that_ignores_sigterm_is_killed(
    bench: Bench, docker: FakeRuntime, boxed: Callable[[FakeRuntime, str], int]
) -> None:
    pid = boxed(docker, "trap '' TERM; echo up; sleep 600")
    bench.tasks.stop("worker:0", 0.0, bench.now)
    assert bench.comes(Exited).exit_code == -signal.SIGKILL
    assert docker.names == [] and not lives(pid)


def test_the_end_of_the_runtimes_own_program_ends_the_container(
    bench: Bench, docker: FakeRuntime, boxed: Callable[[FakeRuntime, str], int]
) -> None:
    pid = boxed(docker, LASTS)
    bench.tasks.running["worker:0"].process.kill()
    assert bench.comes(Exited).exit_code == -signal.SIGKILL
    assert docker.names == [] and not lives(pid)


def test_a_kill_inside_the_container_is_reported_as_that_signal(
    bench: Bench, docker: FakeRuntime, boxed: Callable[[FakeRuntime, str], int]
) -> None:
    os.kill(boxed(docker, LASTS), signal.SIGSEGV)
    assert bench.comes(Exited).exit_code == -signal.SIGSEGV


def test_a_container_that_cannot_be_removed_is_reported_as_left(
    bench: Bench, docker: FakeRuntime, boxed: Callable[[FakeRuntime, str], int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(task_containers, "GONE_S", 0.2)
    pid = boxed(docker, LASTS)
    (name,) = docker.names
    docker.breaks()
    bench.tasks.stop("worker:0", 0.0, bench.now)
    bench.comes(Exited)
    assert not lives(pid)
    assert leftovers.look(bench.folder).containers == [f"{name} (cannot reach the daemon)"]


def test_without_the_agent_the_record_alone_ends_the_run_s_containers_and_no_other(
    bench: Bench, docker: FakeRuntime, boxed: Callable[[FakeRuntime, str], int]
) -> None:
    pid = boxed(docker, LASTS)
    (name,) = docker.names
    foreign = Path(docker.program).parent / "state" / "launch.other.worker.0.0.7.1"
    foreign.write_text(str(2**22 + 1))
    (bench.folder.own / process_records.TASKS).unlink()  # as for a process that is too young to be in it
    assert leftovers.look(bench.folder).containers == [name]
    leftovers.end(bench.folder)
    assert docker.names == [foreign.name] and not lives(pid)
    assert leftovers.look(bench.folder).containers == process_records.container_names(bench.folder) == []


def test_a_process_that_its_runtime_leaves_is_found_by_the_name_of_its_container(
    bench: Bench, docker: FakeRuntime, boxed: Callable[[FakeRuntime, str], int]
) -> None:
    pid = boxed(docker, LASTS)
    (name,) = docker.names
    (Path(docker.program).parent / "state" / name).write_text(str(2**22 + 1))  # it kills another process than this
    bench.folder.write(process_records.TASKS, {"boot": process_records.boot(), "leaders": [], "others": []})
    leftovers.end(bench.folder)
    assert not lives(pid)


def test_a_process_that_waits_for_its_turn_ends_with_its_container(bench: Bench, docker: FakeRuntime) -> None:
    bench.start("sh", "-c", "exit 0", container=container_of(docker))
    bench.comes(Exited)
    bench.tasks.prepare("worker:0", 1, "{}", 0)
    eventually("its container", lambda: docker.names)
    bench.tasks.obey(Dismiss("worker:0", 1), bench.now)
    assert bench.tasks.sweep() == 1  # an agent that leaves waits for the proof, and lets it come
    eventually("the proof", lambda: bench.tasks.sweep() == 0, patience_s=20.0)
    assert docker.names == process_records.container_names(bench.folder) == []


def test_sigterm_is_for_the_task_and_not_for_apptainer_which_serves_it(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, boxed: Callable[[FakeRuntime, str], int]
) -> None:
    apptainer = FakeRuntime(tmp_path / "bin", "apptainer", monkeypatch)
    pid = boxed(apptainer, "trap 'echo asked; sleep 0.2; exit 7' TERM; echo up; while :; do sleep 0.05; done")
    leader = bench.tasks.running["worker:0"].process.pid
    assert processes.inspect(pid).parent == leader  # type: ignore[union-attr]
    assert processes.environment(pid)["KEY"] == "s" and "HOME" not in processes.environment(pid)
    bench.tasks.stop("worker:0", 60.0, bench.now)
    assert bench.comes(Exited).exit_code == 7
    assert bench.folder.log("worker:0", 0).read_text().count("asked") == 1
