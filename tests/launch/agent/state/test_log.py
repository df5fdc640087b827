"""What strangers can cause to be logged is a line a minute, and what the system refuses the loop is no traceback."""

import asyncio
from typing import Any, Callable

import pytest

from launch.agent.service.daemon import log_system_errors
from launch.agent.state import log as agent_log
from tests.support.clocks import Clock


@pytest.fixture
def log(capfd: Any, monkeypatch: pytest.MonkeyPatch) -> Callable[[], str]:
    monkeypatch.setattr(agent_log, "_seldom", {})
    return lambda: "".join(capfd.readouterr())


def test_of_a_kind_one_line_is_logged_in_a_minute_and_then_how_many_were_left_out(log: Callable[[], str]) -> None:
    clock = Clock()
    for number in range(1000):
        agent_log.say_seldom("kind", f"line {number}", clock)
    agent_log.say_seldom("another", "another kind", clock)
    clock.now += agent_log.SELDOM_S
    agent_log.say_seldom("kind", "the newest", clock)
    assert log() == "line 0\nanother kind\nthe newest; 999 such lines before it were left out\n"


def test_an_error_of_the_system_beside_the_tasks_is_a_line_and_another_error_keeps_its_traceback(
    log: Callable[[], str], caplog: Any
) -> None:
    async def main() -> None:
        loop = asyncio.get_event_loop()
        log_system_errors(loop)
        loop.call_exception_handler({"message": "socket.accept() failed", "exception": OSError(24, "Too many files")})
        loop.call_exception_handler({"message": "a bug", "exception": KeyError("x")})

    asyncio.run(main())
    assert log().startswith("socket.accept() failed: [Errno 24] Too many files\n")
    assert [record.message.splitlines()[0] for record in caplog.records] == ["a bug"]
