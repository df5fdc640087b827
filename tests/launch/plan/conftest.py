"""What tests of plans share."""

import functools
from pathlib import Path

import pytest

from tests.launch.plan import plans
from tests.launch.plan.plans import Read


@pytest.fixture
def read(tmp_path: Path) -> Read:
    """The spec of a text."""
    return functools.partial(plans.read, tmp_path)
