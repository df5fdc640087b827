"""A try is a process that gets the event, and ends in time with all that it has started."""

import asyncio
import json
import os
from pathlib import Path
from typing import Any, Tuple

import pytest

from cluster.protocol.settings import Hook
from launch.agent.hooks.post import LATER, NEVER
from launch.agent.hooks.receivers import Result, judge_try, receivers, try_once
from launch.status.hook_event import HookEvent
from tests.support.agent.http_receiver import HttpReceiver
from tests.support.launch.machine import living_under
from tests.support.waiting import eventually

EVENT = HookEvent(id="r/failed", event="failed", text="r has failed \u2026" + "x" * 100_000)  # more than a pipe takes
SECRETS = {"KEY": "hunter2!"}


def tried(folder: Path, within_s: float = 60.0, **hook: Any) -> Result:
    (receiver,) = receivers([Hook("failed", **hook)], SECRETS, folder)
    return asyncio.run(try_once(receiver, EVENT, SECRETS.values(), within_s))


def sh(script: str) -> Tuple[str, ...]:
    return "sh", "-c", script


def test_a_command_reads_the_event_and_its_secrets_and_takes_it_with_exit_code_0(tmp_path: Path) -> None:
    assert tried(tmp_path, command=sh("cat > event; echo $KEY > key")) == Result(True)
    assert json.loads((tmp_path / "event").read_text())["text"] == EVENT.text
    assert (tmp_path / "key").read_text() == "hunter2!\n"


def test_a_command_that_fails_is_told_by_its_last_line_without_secrets(tmp_path: Path) -> None:
    failed = tried(tmp_path, command=sh("echo first; printf '\\033[1mno mail for %s\\n\\n' $KEY >&2; exit 3"))
    assert failed == Result(False, "exit code 3; its last line: no mail for (secret)")


def test_a_command_that_does_not_end_is_killed_in_time_with_what_it_started(tmp_path: Path) -> None:
    script = "trap : TERM; (trap : TERM; sleep 1000; :) & yes & while :; do sleep 1000; done"
    assert tried(tmp_path, 0.3, command=sh(script)) == Result(False, "it did not end within 0 s")
    eventually("no process of the command", lambda: not living_under(tmp_path))


def test_what_a_command_leaves_behind_ends_with_it(tmp_path: Path) -> None:
    assert tried(tmp_path, command=sh("sleep 1000 & exit 0")).taken
    eventually("no process of the command", lambda: not living_under(tmp_path))


def test_a_command_that_is_not_there_is_told(tmp_path: Path) -> None:
    assert tried(tmp_path, command=("./nothing",)) == Result(False, f"it cannot be started: {os.strerror(2)}")


def test_a_url_gets_the_event_by_a_program_of_its_own(tmp_path: Path) -> None:
    with HttpReceiver() as server:
        assert tried(tmp_path, url=server.url, headers={"X": "{KEY}"}) == Result(True)
    ((_, _, headers, body),) = server.got
    assert (headers["X"], body["id"], body["text"]) == ("hunter2!", "r/failed", EVENT.text)


@pytest.mark.parametrize(
    ("is_url", "code", "line", "expected"),
    [
        (True, LATER, "no answer", Result(False, "no answer")),
        (True, NEVER, "it answered 404", Result(False, "it answered 404", again=False)),
        (True, -9, "", Result(False, "killed by SIGKILL")),
        (False, NEVER, "", Result(False, f"exit code {NEVER}")),
        (False, -15, "bye", Result(False, "killed by SIGTERM; its last line: bye")),
    ],
)
def test_another_try_follows_unless_a_url_has_refused(is_url: bool, code: int, line: str, expected: Result) -> None:
    assert judge_try(is_url, code, line) == expected
