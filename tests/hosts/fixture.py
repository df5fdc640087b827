"""``fake_hosts`` for tests: registered by ``tests/conftest.py``."""

from contextlib import ExitStack
from typing import Callable, Iterator

import pytest

from tests.hosts import FakeHosts, needs


@pytest.fixture
def fake_hosts() -> Iterator[Callable[..., FakeHosts]]:
    """``fake_hosts(3)``: fresh hosts until the end of the test. Skips where this machine cannot have any."""
    if needs.missing():
        pytest.skip("fake hosts need, and this machine lacks: " + "; ".join(needs.missing()))
    with ExitStack() as stack:
        yield lambda count, prefix="h": stack.enter_context(FakeHosts(count, prefix))
