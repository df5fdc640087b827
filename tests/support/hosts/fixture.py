"""Fake hosts for tests: ``fake_hosts``, registered by ``tests/conftest.py``, and ``hosts_here`` for fixtures."""

from contextlib import ExitStack, contextmanager
from typing import Callable, Iterator

import pytest

from tests.support.hosts import FakeHosts, needs


def skip_without() -> None:
    """Skips the test that calls it where this machine cannot have fake hosts."""
    if needs.missing():
        pytest.skip("needs fake hosts: this machine lacks " + "; ".join(needs.missing()))


@contextmanager
def hosts_here(count: int, prefix: str = "h") -> Iterator[FakeHosts]:
    """Fresh hosts until the end of the block. Skips where this machine cannot have any."""
    skip_without()
    with FakeHosts(count, prefix) as hosts:
        yield hosts


@pytest.fixture
def fake_hosts() -> Iterator[Callable[..., FakeHosts]]:
    """``fake_hosts(3)``: fresh hosts until the end of the test. Skips a test that only names it, too."""
    skip_without()
    with ExitStack() as stack:
        yield lambda count, prefix="h": stack.enter_context(hosts_here(count, prefix))
