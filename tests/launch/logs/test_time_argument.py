"""Times as a person writes them: ago, today, or in full."""

import time
from datetime import datetime, timezone

import pytest

from launch.errors import UsageError
from launch.verbs.logs import moment

NOW = datetime(2026, 11, 20, 16, 30, 0)


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("30s", datetime(2026, 11, 20, 16, 29, 30)),
        ("10m", datetime(2026, 11, 20, 16, 20, 0)),
        ("1.5h", datetime(2026, 11, 20, 15, 0, 0)),
        ("2d", datetime(2026, 11, 18, 16, 30, 0)),
        ("15:59", datetime(2026, 11, 20, 15, 59, 0)),
        ("9:05:07", datetime(2026, 11, 20, 9, 5, 7)),
        ("2026-11-19", datetime(2026, 11, 19)),
        ("2026-11-19T15:59:02", datetime(2026, 11, 19, 15, 59, 2)),
        ("2026-11-19 15:59", datetime(2026, 11, 19, 15, 59)),
        ("2026-11-19T15:59:02+00:00", datetime(2026, 11, 19, 15, 59, 2, tzinfo=timezone.utc)),
    ],
)
def test_a_time_is_ago_or_today_or_in_full(text: str, meant: datetime) -> None:
    assert moment(text, NOW) == meant.timestamp()


@pytest.mark.parametrize("text", ["", "10", "10 m", "yesterday", "25:00", "2026-13-01", "-5m"])
def test_what_is_no_time_is_refused_with_what_is(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        moment(text, NOW)
    assert str(caught.value).startswith("TIME: expected 30s, 10m, 2h or 1d (ago), ") and repr(text) in str(caught.value)


def test_minutes_ago_are_minutes_also_in_the_second_of_autumns_two_equal_hours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "America/New_York")
    time.tzset()
    now = datetime.fromtimestamp(1_793_516_400 - 1800)  # half past one, for the second time
    assert (now.hour, now.minute, now.fold) == (1, 30, 1)
    assert moment("10m", now) == now.timestamp() - 600
    monkeypatch.undo()
    time.tzset()
