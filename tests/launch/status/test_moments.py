"""Times are in UTC, with the offset, in whatever time zone a host is."""

import time
from datetime import datetime
from typing import Iterator

import pytest

from launch.status.run import utc


@pytest.fixture(params=["Pacific/Kiritimati", "America/St_Johns", "UTC"])
def zone(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """This process in a time zone."""
    monkeypatch.setenv("TZ", request.param)
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def test_a_time_is_the_same_text_in_every_time_zone(zone: None) -> None:
    assert utc(1_795_190_342.9) == "2026-11-20T15:59:02+00:00"


def test_both_hours_of_an_autumn_night_are_read_back_as_they_were(zone: None) -> None:
    for moment in (1_793_509_200, 1_793_512_800):  # 01:30 of summer time in St. John's, and of winter time
        assert datetime.fromisoformat(utc(moment)).timestamp() == moment
