"""A command gives notice that a machine is to go by its exit code; one that does not work is none, and is logged."""

import asyncio
import time
from pathlib import Path
from typing import List

import pytest

from cluster.protocol.settings import Notice
from launch.agent import notice as module
from launch.agent.notice import watch
from launch.agent.state import log

pytestmark = pytest.mark.not_fast

SECRETS = {"KEY": "hunter2!"}


def left_by(folder: Path, *command: str, patience_s: float = 60.0) -> List[str]:
    """The reasons with which the host leaves within a time, or before the log has a line."""
    reasons: List[str] = []
    log._seldom.clear()

    async def look() -> None:
        watching = asyncio.ensure_future(watch(Notice(command, 0.01), folder, SECRETS, reasons.append))
        until = time.monotonic() + patience_s
        while not watching.done() and not log._seldom and time.monotonic() < until:
            await asyncio.sleep(0.02)
        watching.cancel()

    asyncio.run(look())
    return reasons


def test_a_host_leaves_once_with_the_last_line_when_the_command_ends_with_exit_code_0(tmp_path: Path) -> None:
    script = "echo x >> tried; test $(wc -l < tried) = 3 || exit 1; echo first; echo goes at 7, $KEY"
    assert left_by(tmp_path, "sh", "-c", script) == ["notice: goes at 7, (secret)"]
    assert (tmp_path / "tried").read_text() == "x\n" * 3


def test_a_command_without_a_word_is_the_reason_itself(tmp_path: Path) -> None:
    assert left_by(tmp_path, "true") == ["notice: true has ended with exit code 0"]


@pytest.mark.parametrize(
    ("command", "line"),
    [
        (("./nothing",), "notice: ./nothing cannot be started: No such file or directory\n"),
        (("sh", "-c", "no-such-program"), "notice: sh: exit code 127; "),
        (("sh", "-c", "kill -9 $$"), "notice: sh: killed by SIGKILL\n"),
        (("sleep", "1000"), "notice: sleep has not ended within 0 s\n"),
        (("sh", "-c", "exit 22"), ""),
    ],
)
def test_a_command_that_does_not_work_is_no_notice_and_one_line_of_the_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], command: List[str], line: str
) -> None:
    monkeypatch.setattr(module, "TRY_S", 0.3)
    assert left_by(tmp_path, *command, patience_s=60.0 if line else 0.8) == []
    printed = [each for each in capsys.readouterr().err.splitlines(keepends=True) if each.startswith("notice: ")]
    assert len(printed) == (1 if line else 0) and "".join(printed).startswith(line)
