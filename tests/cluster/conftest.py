"""What holds for the tests of training: the sessions of a test are closed at its end."""

from typing import Iterator

import pytest

from tests.support.training import kept


@pytest.fixture(autouse=True)
def sessions_are_closed() -> Iterator[None]:
    with kept.sessions_closed():
        yield
