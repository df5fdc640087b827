"""Output that cannot be printed: a run goes on and reports it once on stderr; a verb that only prints ends."""

import io
import os
import pty
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from threading import Thread
from typing import Iterator, List, Tuple

import pytest

from launch import output
from launch.cli import VERBS
from launch.output import GOES_ON, Output, OutputLost
from tests.support import ROOT
from tests.support.launch.launcher import LAUNCH, Launcher
from tests.support.waiting import PATIENCE_S


@pytest.fixture
def lost() -> List[str]:
    """What is reported elsewhere."""
    return []


@pytest.fixture
def full() -> Iterator[int]:
    """A file on a full disk."""
    handle = os.open("/dev/full", os.O_WRONLY)
    yield handle
    os.close(handle)


@pytest.fixture
def pipe() -> Iterator[Tuple[int, int]]:
    """A pipe that no process but this one has."""
    with ExitStack() as stack:
        ends = os.pipe()
        for end in ends:
            stack.callback(_close, end)
        yield ends


def _close(handle: int) -> None:
    try:
        os.close(handle)
    except OSError:
        return


def test_a_verb_that_goes_on_reports_a_full_disk_once_with_the_file(full: int, lost: List[str]) -> None:
    printed = Output(full, "stdout", lost.append, goes_on=True)
    assert [printed.write(b"line\n") for _ in range(3)] == [5, 5, 5]
    reason = "cannot print to /dev/full (stdout): No space left on device"
    assert lost == [f"{reason}; this command continues without it"]


def test_a_verb_that_only_prints_ends_on_a_full_disk_with_the_file(full: int, lost: List[str]) -> None:
    with pytest.raises(OutputLost) as caught:
        Output(full, "stdout", lost.append).write(b"line\n")
    assert str(caught.value) == "cannot print to /dev/full (stdout): No space left on device"
    assert (caught.value.exit_code, lost) == (1, [])


def test_a_verb_that_only_prints_ends_without_a_word_where_its_pipe_ends(
    pipe: Tuple[int, int], lost: List[str]
) -> None:
    os.close(pipe[0])
    printed = Output(pipe[1], "stdout", lost.append)
    with pytest.raises(OutputLost) as caught:
        printed.write(b"line\n")
    assert (str(caught.value), caught.value.exit_code, lost) == ("", 141, [])
    printed.write(b"the flush at the exit of Python\n")


def test_a_closed_file_is_called_closed(pipe: Tuple[int, int], lost: List[str]) -> None:
    os.close(pipe[1])
    Output(pipe[1], "stdout", lost.append, goes_on=True).write(b"line\n")
    assert lost == ["cannot print to stdout: it is closed; this command continues without it"]


def test_a_reader_that_stands_still_stops_no_run_and_gets_what_it_has_room_for_later(
    pipe: Tuple[int, int], lost: List[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(output, "STALL_S", 0.01)
    read, write = pipe
    printed = io.BufferedWriter(Output(write, "stdout", lost.append, goes_on=True))
    for _ in range(40):  # 64 KiB fit into a pipe
        printed.write(b"x" * 4096)
        printed.flush()
    reason = "cannot print to stdout: its reader has read nothing for 0 s"
    assert lost == [f"{reason}; this command continues without it"]
    while len(os.read(read, 1 << 20)) == 1 << 20:
        pass
    printed.write(b"later")
    printed.flush()
    assert os.read(read, 100) == b"later" and len(lost) == 1


def test_a_verb_that_only_prints_waits_for_its_reader_where_a_write_would_not(
    pipe: Tuple[int, int], lost: List[str]
) -> None:
    read, write = pipe
    os.set_blocking(write, False)  # as ssh and Node.js leave a terminal or pipe that they share
    printed = io.BufferedWriter(Output(write, "stdout", lost.append))
    received: List[int] = []
    reader = Thread(target=lambda: received.append(_length(read)))
    reader.start()
    for _ in range(200):  # 64 KiB fit into a pipe
        printed.write(b"x" * 4096)
        printed.flush()
    os.close(write)
    reader.join(PATIENCE_S)
    assert received == [200 * 4096]


def _length(handle: int) -> int:
    return sum(map(len, iter(lambda: os.read(handle, 4096), b"")))


ONLY_PRINTS = {
    "board", "check", "completion", "diagnose", "export", "import", "init", "logs", "manifest", "metrics", "plan",
    "report", "runs", "schema", "status", "view",
}  # fmt: skip


def test_each_verb_goes_on_or_only_prints() -> None:
    assert {verb for verb in VERBS if " " not in verb} == GOES_ON | ONLY_PRINTS
    assert GOES_ON.isdisjoint(ONLY_PRINTS)


RUNS = {
    "full": (">/dev/full", "cannot print to /dev/full (stdout): No space left on device; this command continues"),
    "closed": (">&-", "cannot print to stdout: it is closed; this command continues"),
    "a pipe that ends": ("> >(head -1 >/dev/null)", "cannot print to stdout: Broken pipe; this command continues"),
}


@pytest.mark.not_fast
@pytest.mark.parametrize("where", RUNS)
def test_a_run_goes_on_to_its_end_where_its_launcher_cannot_print(launch: Launcher, where: str) -> None:
    launch.write("test {role} = ps && exec sleep 1000; sleep 2; echo trained; exit {index}")
    to, reported = RUNS[where]
    code, errors = in_bash(launch, "up", to)
    assert (code, errors) == (1, f"{reported} without it\n"), "worker 1 fails by itself"
    assert "exit code 1" in launch.status()["cause"]
    assert launch.log("worker:1") == "trained\n" and launch.left() == []


@pytest.mark.not_fast
def test_a_run_goes_on_where_no_output_of_its_launcher_is_open(launch: Launcher) -> None:
    launch.write("test {role} = ps && exec sleep 1000; sleep 1; echo trained")
    assert in_bash(launch, "up", ">&- 2>&- <&-") == (0, "")
    assert launch.log("worker:0") == "trained\n" and launch.left() == []


STALLED = """\
import os, time
from launch import output
output.STALL_S = 0.3
output.install().goes_on = True
from launch.view.live_view import for_terminal
with for_terminal() as view:
    until = time.monotonic() + 3.0
    while time.monotonic() < until:
        view.note("line")
os._exit(7)
"""


@pytest.mark.not_fast
def test_a_terminal_that_is_stopped_by_ctrl_s_stops_no_live_view_and_is_reported(tmp_path: Path) -> None:
    ours, terminal = pty.openpty()
    errors = tmp_path / "errors"
    with errors.open("w") as file:
        viewing = subprocess.Popen(
            [sys.executable, "-c", STALLED], stdin=terminal, stdout=terminal, stderr=file, cwd=str(ROOT),
            env={**os.environ, "TERM": "xterm"},
        )  # fmt: skip
    try:
        assert os.read(ours, 10)
        os.write(ours, b"\x13")
        assert viewing.wait(PATIENCE_S) == 7
    finally:
        viewing.kill()
        viewing.wait()
        os.close(terminal)
        os.close(ours)
    assert errors.read_text().endswith("its reader has read nothing for 0 s; this command continues without it\n")


@pytest.mark.not_fast
def test_a_program_of_the_command_line_goes_on_too(launch: Launcher) -> None:
    program = "-- sh -c 'sleep 1; exit 0'"
    words = f"--local -H a --set name=r --set workdir={launch.workdir} --save"
    code, errors = in_bash(launch, f"run {words}", f"{program} >/dev/full")
    assert code == 0 and errors.endswith("No space left on device; this command continues without it\n"), errors
    assert launch.left() == []


@pytest.mark.not_fast
def test_other_verbs_end_by_a_pipe_quietly_and_by_a_full_disk_with_its_name(launch: Launcher) -> None:
    launch.write("exit 0")
    assert in_bash(launch, "plan", "> >(true)") == (141, "")
    full = "cannot print to /dev/full (stdout): No space left on device\n"
    assert in_bash(launch, "plan", "--json >/dev/full") == (1, full)
    assert in_bash(launch, "plan", "2>/dev/full >/dev/null") == (0, "")


def in_bash(launch: Launcher, verb: str, words: str) -> Tuple[int, str]:
    """Exit code and stderr of a verb, with redirections."""
    command = f'exec "$@" {verb} "$FILE" {words}'
    ran = subprocess.run(
        ["bash", "-c", command, "bash", *LAUNCH], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
        env={**os.environ, "FILE": str(launch.file)}, cwd=str(ROOT), timeout=PATIENCE_S, text=True,
    )  # fmt: skip
    return ran.returncode, ran.stderr
