"""The Tab key, in real shells: what Bash makes of a line, and what is offered to the others."""

import os
import pty
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Iterator

import pytest

from launch.agent.linux.open_files import readable
from tests.support import ROOT
from tests.support.launch.launcher import LAUNCH
from tests.support.waiting import PATIENCE_S

TWO = "job: digits\ncluster: {ps: [cpu01], worker: ['gpu[01-02]']}\n"


class Terminal:
    """An interactive Bash in which ``launch`` completes, in a folder with a hosts file and other things."""

    def __init__(self, folder: Path):
        for name in ("hosts.yaml", "other.yml"):
            (folder / name).write_text(TWO)
        (folder / "notes.txt").touch()
        (folder / "runs").mkdir()
        _make_launch(folder / "bin")
        self._screen, inside = pty.openpty()
        env = {**os.environ, "PATH": f"{folder}/bin:{os.environ['PATH']}", "TERM": "dumb"}
        self._bash = subprocess.Popen(
            ["bash", "--norc", "--noprofile", "-i"], stdin=inside, stdout=inside, stderr=inside, cwd=str(folder),
            env=env, start_new_session=True,
        )  # fmt: skip
        os.close(inside)
        self._shown = ""
        self.type("bind 'set enable-bracketed-paste off'; bind 'set bell-style none'\n")
        self.type('eval "$(launch completion bash)"; echo defined=$?\n')
        self.sees("defined=0")

    def type(self, text: str) -> None:
        os.write(self._screen, text.encode())

    def sees(self, text: str) -> None:
        """Waits until the text has been on the screen since the last time."""
        until = time.monotonic() + PATIENCE_S
        while text not in self._shown:
            left = until - time.monotonic()
            assert left > 0 and readable(self._screen, left), f"no {text!r} in {self._shown!r}"
            self._shown += os.read(self._screen, 4096).decode()
        self._shown = self._shown.split(text, 1)[1]

    def completes(self, typed: str, line: str) -> None:
        """Types, presses Tab, sees the line with what is typed next, and clears it."""
        self.type(f"{typed}\t|")
        self.sees(f"{line}|")
        self.type("\x15")

    def close(self) -> None:
        self._bash.kill()
        self._bash.wait()
        os.close(self._screen)


def _make_launch(folder: Path) -> None:
    folder.mkdir()
    (folder / "launch").write_text(f'#!/bin/sh\nPYTHONPATH={ROOT} exec {sys.executable} -m launch "$@"\n')
    (folder / "launch").chmod(0o755)


@pytest.fixture
def bash(tmp_path: Path) -> Iterator[Terminal]:
    terminal = Terminal(tmp_path)
    yield terminal
    terminal.close()


def test_bash_completes_verbs_flags_files_tasks_and_keys(bash: Terminal) -> None:
    bash.completes("launch sta", "launch status ")
    bash.completes("launch up --det", "launch up --detach ")
    bash.completes("launch up h", "launch up hosts.yaml ")
    bash.completes("launch up r", "launch up runs/")  # and goes on behind the slash
    bash.completes("launch up n", "launch up n")  # notes.txt is no hosts file
    bash.completes("launch logs hosts.yaml ps:", "launch logs hosts.yaml ps:")
    bash.completes("launch logs hosts.yaml worker:1", "launch logs hosts.yaml worker:1 ")
    bash.completes("launch logs hosts.yaml cpu", "launch logs hosts.yaml cpu01 ")
    bash.completes("launch up hosts.yaml --set train.st", "launch up hosts.yaml --set train.st")
    bash.completes("launch up hosts.yaml --set train.ste", "launch up hosts.yaml --set train.steps=")
    bash.completes("launch completion fi", "launch completion fish ")
    bash.completes("launch import tf", "launch import tfjob ")
    bash.completes("launch import --pb", "launch import --pbs ")
    bash.completes("launch run -H a --det", "launch run -H a --detach ")
    bash.completes("launch run -H a no", "launch run -H a notes.txt ")
    bash.completes("launch import no", "launch import notes.txt ")
    bash.completes("launch import tfjob h", "launch import tfjob hosts.yaml ")


def offered(folder: Path, shell: str, words: str) -> str:
    """What Click's script for a shell is answered: ``words`` typed so far, the last one incomplete."""
    env = {**os.environ, "PYTHONPATH": str(ROOT), "_LAUNCH_COMPLETE": f"{shell}_complete"}
    env.update(COMP_WORDS=words, COMP_CWORD=words.split(" ")[-1] if shell == "fish" else str(words.count(" ")))
    argv = [*LAUNCH[:-1], "launch"]
    ran = subprocess.run(
        argv, cwd=str(folder), env=env, stdout=subprocess.PIPE, text=True, timeout=PATIENCE_S, check=True
    )
    return ran.stdout


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_the_other_shells_are_offered_the_same(tmp_path: Path, shell: str) -> None:
    (tmp_path / "hosts.yaml").write_text(TWO)
    (tmp_path / "notes.txt").touch()
    found = offered(tmp_path, shell, "launch logs hosts.yaml wor")
    assert re.findall(r"worker:[01*]", found) == ["worker:0", "worker:1", "worker:*"]
    found = offered(tmp_path, shell, "launch up ")
    assert "hosts.yaml" in found and "notes.txt" not in found


def test_a_file_that_cannot_be_read_offers_no_tasks_and_says_nothing(tmp_path: Path) -> None:
    (tmp_path / "hosts.yaml").write_text("job: [")
    assert offered(tmp_path, "zsh", "launch logs hosts.yaml wor").strip() == ""
    assert offered(tmp_path, "zsh", "launch logs nowhere.yaml wor").strip() == ""


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_of_a_shell_is_one_that_it_reads(tmp_path: Path, shell: str) -> None:
    script = subprocess.run(
        [*LAUNCH, "completion", shell], stdout=subprocess.PIPE, cwd=str(ROOT), timeout=PATIENCE_S, check=True
    )
    assert b"_LAUNCH_COMPLETE" in script.stdout
    if shutil.which(shell):
        (tmp_path / "script").write_bytes(script.stdout)
        assert subprocess.run([shell, "-n", str(tmp_path / "script")], timeout=PATIENCE_S).returncode == 0
