"""Agents for tests, and strangers beside them, ended with the tests."""

import subprocess
from pathlib import Path
from typing import Any, Callable, Iterator, List

import pytest

from tests.support.agent.agents import Agents
from tests.support.agent.bench import Bench


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
def bench(tmp_path: Path) -> Iterator[Bench]:
    """One host's tasks, which end with the test."""
    bench = Bench(tmp_path / "w")
    yield bench
    bench.end()


@pytest.fixture
def bystander() -> Iterator["subprocess.Popen[bytes]"]:
    """A stranger's process that looks just like a task's."""
    with subprocess.Popen(["sleep", "1000"], start_new_session=True) as process:
        yield process
        process.kill()
