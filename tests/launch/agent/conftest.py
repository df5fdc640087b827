"""Agents for tests, and strangers beside them, ended with the tests."""

import subprocess
from pathlib import Path
from typing import Any, Callable, Iterator, List

import pytest

from tests.support.agent.agents import Agents


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Callable[..., Agents]]:
    """``run({"worker:0@localhost": script})``: agents that end with the test."""
    made: List[Agents] = []

    def make(*arguments: Any, **changes: Any) -> Agents:
        made.append(Agents(tmp_path / "w", *arguments, **changes))
        return made[-1]

    yield make
    for agents in made:
        agents.end()


@pytest.fixture
def bystander() -> Iterator["subprocess.Popen[bytes]"]:
    """A stranger's process that looks just like a task's."""
    with subprocess.Popen(["sleep", "1000"], start_new_session=True) as process:
        yield process
        process.kill()
