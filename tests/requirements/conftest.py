"""The checkout that the tests of the bootstrap work in."""

from pathlib import Path

import pytest

from tests.requirements.checkout import Checkout


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    return Checkout(tmp_path)
