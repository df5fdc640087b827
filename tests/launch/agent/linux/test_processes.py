"""A task is a process group of its own that dies when it should and that no other process is taken for."""

import os
import signal
import subprocess
import sys
import textwrap
from functools import partial
from pathlib import Path
from typing import Callable, Iterator, List

import pytest

from launch.agent.linux import processes
from tests.support.waiting import PATIENCE_S, eventually

Begin = Callable[..., "subprocess.Popen[bytes]"]


@pytest.fixture
def begin(tmp_path: Path) -> Iterator[Begin]:
    """Starts ``sh -c SCRIPT`` as a task; whatever lives of it at the end is ended."""
    begun: List[subprocess.Popen[bytes]] = []

    def start(script: str, **env: str) -> "subprocess.Popen[bytes]":
        variables = {"PATH": os.environ["PATH"], **env}
        process = processes.start(["sh", "-c", script], variables, tmp_path, tmp_path / "log")
        begun.append(process)
        return process

    yield start
    for process in begun:
        if process.returncode is None:
            # Again and again: it may have been about to start another one.
            eventually("the end of the group", partial(end, process.pid))
            process.wait(PATIENCE_S)


def end(leader: int) -> bool:
    """Kills what there is of a group; True when there is nothing."""
    processes.signal_group(leader, signal.SIGKILL)
    return not processes.group_members(leader)


def read(path: Path) -> str:
    """The file's text, once there is one."""
    return str(eventually(f"a text in {path}", lambda: path.exists() and path.read_text().strip()))


def test_a_task_leads_a_session_and_a_group_of_its_own(begin: Begin) -> None:
    task = processes.inspect(begin("sleep 60").pid)
    assert task is not None
    assert (task.group, task.session, task.parent) == (task.pid, task.pid, os.getpid())


def test_a_task_has_the_folder_the_environment_and_nothing_to_read(begin: Begin, tmp_path: Path) -> None:
    begin('pwd; echo "$COLOUR"; cat; echo done >&2', COLOUR="blue").wait(PATIENCE_S)
    assert (tmp_path / "log").read_text() == f"{tmp_path}\nblue\ndone\n"


def test_a_log_is_continued_not_replaced(begin: Begin, tmp_path: Path) -> None:
    begin("echo one").wait(PATIENCE_S)
    begin("echo two").wait(PATIENCE_S)
    assert (tmp_path / "log").read_text() == "one\ntwo\n"


def test_a_program_that_is_not_there_is_an_error_that_names_it(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as caught:
        processes.start(["no-such-program"], {}, tmp_path, tmp_path / "log")
    assert caught.value.filename == "no-such-program"


def test_a_task_that_has_ended_is_noticed_before_it_is_reaped(begin: Begin) -> None:
    task = begin("exit 3")
    eventually("its end", lambda: processes.has_exited(task.pid))
    left = processes.inspect(task.pid)
    assert left is not None and left.state == "Z"  # so nobody else can get its number
    assert task.wait(PATIENCE_S) == 3


def test_a_running_task_has_not_exited(begin: Begin) -> None:
    assert not processes.has_exited(begin("sleep 60").pid)


def test_the_whole_group_is_signalled_children_too(begin: Begin, tmp_path: Path) -> None:
    task = begin("sleep 60 & echo $! > child; wait")
    child = int(read(tmp_path / "child"))
    assert {p.pid for p in processes.group_members(task.pid)} == {task.pid, child}
    processes.signal_group(task.pid, signal.SIGKILL)
    eventually("the end of both", lambda: not processes.group_members(task.pid))
    assert processes.inspect(child) is None or processes.inspect(child).state == "Z"  # type: ignore[union-attr]


def test_a_child_in_a_group_of_its_own_still_belongs_to_the_session(begin: Begin, tmp_path: Path) -> None:
    script = "import os; os.setpgid(0, 0); print(os.getpid(), flush=True); os.execlp('sleep', 'sleep', '60')"
    task = begin(f'{sys.executable} -c "{script}" > child & wait')
    child = int(read(tmp_path / "child"))
    found = processes.inspect(child)
    assert found is not None and found.group == child
    assert child in {p.pid for p in processes.group_members(task.pid)}


def test_a_process_is_only_signalled_while_its_start_time_is_the_recorded_one(begin: Begin) -> None:
    task = begin("exec sleep 60")
    seen = processes.inspect(task.pid)
    assert seen is not None
    processes.signal_process(task.pid, seen.start + 1, signal.SIGKILL)
    assert processes.is_same(task.pid, seen.start) and not processes.is_same(task.pid, seen.start + 1)
    processes.signal_process(task.pid, seen.start, signal.SIGKILL)
    assert task.wait(PATIENCE_S) == -signal.SIGKILL
    assert not processes.is_same(task.pid, seen.start)


def test_names_with_spaces_and_parentheses_do_not_confuse_the_process_table(begin: Begin, tmp_path: Path) -> None:
    program = tmp_path / "a ) R 1 (b"
    program.symlink_to("/bin/sleep")
    task = begin(f"exec '{program}' 60")
    eventually("the new name", lambda: "a ) R" in Path(f"/proc/{task.pid}/stat").read_text())
    found = processes.inspect(task.pid)
    assert found is not None and found.parent == os.getpid()


def test_of_a_process_that_is_not_there_nothing_is_known(begin: Begin) -> None:
    task = begin("true")
    task.wait(PATIENCE_S)
    assert processes.inspect(task.pid) is None
    assert (processes.command_line(task.pid), processes.environment(task.pid)) == ("", {})


def test_argv_and_environment_of_another_process_can_be_read(begin: Begin) -> None:
    task = begin("exec sleep 60", COLOUR="blue", EMPTY="")
    eventually("exec", lambda: processes.command_line(task.pid) == "sleep 60")
    found = processes.environment(task.pid)
    assert (found["COLOUR"], found["EMPTY"]) == ("blue", "")


STARTER = """
    import sys, time
    from pathlib import Path
    from launch.agent.linux import processes

    processes.start(["sh", "-c", sys.argv[2]], {"PATH": "/usr/bin:/bin"}, Path(sys.argv[1]), Path(sys.argv[1], "log"))
    time.sleep(60)
"""


def test_a_task_dies_with_the_process_that_started_it(tmp_path: Path) -> None:
    argv = [sys.executable, "-c", textwrap.dedent(STARTER), str(tmp_path), "echo $$ > task; exec sleep 60"]
    with subprocess.Popen(argv) as starter:
        task = int(read(tmp_path / "task"))
        starter.kill()
    eventually("the task's end", lambda: processes.inspect(task) is None)


ADOPTER = """
    import os, subprocess, sys
    from launch.agent.linux import processes

    processes.adopt_orphans()
    known = subprocess.Popen(["sleep", "60"])
    child = subprocess.Popen(["sh", "-c", "setsid sh -c 'echo $$; exec sleep 60' &"], stdout=subprocess.PIPE)
    orphan = int(child.stdout.readline())
    child.wait()
    strays = [p.pid for p in processes.strays(os.getpid(), [known.pid])]
    known.kill()
    os.kill(orphan, 9)
    print(strays == [orphan])
"""


def test_a_descendant_that_lost_its_parent_is_adopted_and_told_from_what_was_started() -> None:
    ran = subprocess.run([sys.executable, "-c", textwrap.dedent(ADOPTER)], stdout=subprocess.PIPE, timeout=30)
    assert ran.stdout == b"True\n"


@pytest.mark.parametrize(
    ("code", "text"),
    [(0, "exit code 0"), (3, "exit code 3"), (-9, "killed by SIGKILL"), (-11, "killed by SIGSEGV"),
     (-34, "killed by SIGRTMIN"), (-40, "killed by signal 40"), (None, "never started")],
)  # fmt: skip
def test_an_exit_is_described_with_its_code_or_the_name_of_its_signal(code: int, text: str) -> None:
    assert processes.describe_exit(code) == text
