"""What tests of tables share."""

import pytest


@pytest.fixture
def several_servers_in_one_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let each of several servers reserve a small part of this machine's memory for its tables."""
    monkeypatch.setattr("cluster.recommend.tables.held_rows._PART_OF_MEMORY", 0.05)
