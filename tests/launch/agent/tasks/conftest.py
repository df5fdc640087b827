"""What the tests of a host's tasks share."""

from pathlib import Path
from typing import Iterator

import pytest

from tests.support.agent.bench import Bench


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    """One host's tasks, which end with the test."""
    bench = Bench(tmp_path / "w")
    yield bench
    bench.end()
