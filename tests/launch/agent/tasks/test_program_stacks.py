"""A Python program under ``command:`` writes its stacks on request, and notices nothing else of the folder."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, Callable, Iterator

import pytest

from launch.agent.tasks import stacks
from launch.agent.tasks.program_stacks import sitecustomize
from launch.agent.tasks.stacks import PROGRAM_STACKS, PROGRAM_STACKS_BY, ask, catches, request_stacks
from launch.agent.tasks.task_env import STACKS_FOLDER, with_stacks, writes_stacks
from tests.support.waiting import eventually

pytestmark = pytest.mark.not_fast
WAITS = "import sys, time\n{}\ndef waiting_here(): time.sleep(1000)\nprint('up', flush=True)\nwaiting_here()"
Start = Callable[..., "subprocess.Popen[bytes]"]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Programs as an agent starts them, once they have printed a line."""
    began = []

    def start(program: str, *options: str, folder: Any = tmp_path, **env: str) -> "subprocess.Popen[bytes]":
        values = with_stacks({**os.environ, "LAUNCH_TASK_DIR": str(folder), **env})
        process = subprocess.Popen([sys.executable, *options, "-c", program], env=values, stdout=subprocess.PIPE)
        began.append(process)
        assert process.stdout is not None and process.stdout.readline() == b"up\n"
        return process

    yield start
    for process in began:
        process.kill()
        process.communicate()


def test_it_writes_them_and_goes_on(start: Start, tmp_path: Path) -> None:
    process = start(WAITS.format(""))
    eventually("its stacks", lambda: "in waiting_here" in request_stacks(process.pid, tmp_path))
    assert process.poll() is None


def test_of_a_shells_children_the_one_that_can_is_asked(start: Start, tmp_path: Path) -> None:
    process = start(WAITS.format(""))
    shell = subprocess.Popen(["sleep", "1000"])
    try:
        assert ask([shell.pid, process.pid], tmp_path) is not None
        assert shell.poll() is None
    finally:
        shell.kill()
        shell.wait()


@pytest.mark.parametrize(
    "own",
    [
        "import os; os.closerange(3, 4096)",  # as a daemon does: the number may mean another file by now
        "import faulthandler, signal; faulthandler.unregister(signal.SIGRTMAX - 5)",
    ],
)
def test_a_program_that_has_closed_the_file_or_does_not_catch_the_signal_is_not_asked(
    start: Start, tmp_path: Path, own: str
) -> None:
    process = start(WAITS.format(own))
    assert ask([process.pid], tmp_path) is None
    assert process.poll() is None


@pytest.mark.parametrize(("options", "folder"), [(["-I"], None), ([], "/nowhere")])
def test_a_program_without_the_module_or_its_folder_runs_as_ever(
    start: Start, tmp_path: Path, options: Any, folder: Any
) -> None:
    process = start(WAITS.format(""), *options, folder=folder or tmp_path)
    assert ask([process.pid], tmp_path) is None and not catches(process.pid, PROGRAM_STACKS_BY)
    assert process.poll() is None


def test_the_hosts_own_module_runs_too_and_the_folder_is_not_in_the_path(start: Start, tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "sitecustomize.py").write_text("print('own', __file__)")
    program = "import sys, sitecustomize; print(sitecustomize.__file__, [p for p in sys.path if 'program_stacks' in p])"
    env = with_stacks({**os.environ, "LAUNCH_TASK_DIR": str(tmp_path), "PYTHONPATH": str(tmp_path / "own")})
    printed = subprocess.check_output([sys.executable, "-c", program], env=env, universal_newlines=True)
    own = tmp_path / "own" / "sitecustomize.py"
    assert printed == f"own {own}\n{own} []\n"


def test_a_program_of_python_2_can_read_the_module(tmp_path: Path) -> None:
    """Without a Python 2 on this machine, no word that only Python 3 knows is in it."""
    text = (STACKS_FOLDER / "sitecustomize.py").read_text()
    assert not re.search(r"^ *def .*->|^from|: str|\bf\"|\bsuppress\b|^import (?!os$|sys$)", text, re.MULTILINE)


def test_both_sides_mean_the_same_file_and_signal() -> None:
    assert (sitecustomize.FILE, signal.SIGRTMAX - 5) == (PROGRAM_STACKS, PROGRAM_STACKS_BY)
    assert Path(sitecustomize.HERE) == STACKS_FOLDER.resolve() or Path(sitecustomize.HERE) == STACKS_FOLDER


def test_the_folder_comes_before_the_programs_own_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", "/agents")
    assert with_stacks({"A": "1"}) == {"A": "1", "PYTHONPATH": f"{STACKS_FOLDER}:/agents"}
    assert with_stacks({"PYTHONPATH": "/own:/more"})["PYTHONPATH"] == f"{STACKS_FOLDER}:/own:/more"
    monkeypatch.delenv("PYTHONPATH")
    assert with_stacks({})["PYTHONPATH"] == str(STACKS_FOLDER)


def test_a_job_writes_its_stacks_itself() -> None:
    assert writes_stacks(["python3.7", "-m", "jobs.main", "digits.py"])
    assert not writes_stacks(["python3.7", "train.py", "--job", "jobs.main"])


def test_the_main_thread_comes_first() -> None:
    text = "Thread 0x1:\n  File a\n\nCurrent thread 0x2:\n  File b\n"
    assert stacks.main_first(text) == "Current thread 0x2:\n  File b\n\nThread 0x1:\n  File a"
    assert stacks.main_first("") == ""
