"""Python loads this when it starts: its wall clock is ahead by the seconds in a file, and jumps when the file changes.

Fake hosts share the kernel's clock, which a test must not set. Waits are measured by other clocks and stay as they are.
"""

import time
from pathlib import Path
from typing import Optional

AHEAD = Path(__file__).with_name("ahead_s")
_time, _time_ns, _localtime, _gmtime, _strftime = time.time, time.time_ns, time.localtime, time.gmtime, time.strftime


def ahead_s() -> int:
    """Return by how many seconds the clock is ahead; less than 0 where it is behind."""
    try:
        return int(AHEAD.read_text())
    except (OSError, ValueError):
        return 0


def _now() -> float:
    return _time() + ahead_s()


def _now_ns() -> int:
    return _time_ns() + ahead_s() * 10**9


def _local(seconds: Optional[float] = None) -> time.struct_time:
    return _localtime(_now() if seconds is None else seconds)


def _utc(seconds: Optional[float] = None) -> time.struct_time:
    return _gmtime(_now() if seconds is None else seconds)


def _written(form: str, moment: Optional[time.struct_time] = None) -> str:
    return _strftime(form, _local() if moment is None else moment)


time.time, time.time_ns, time.localtime, time.gmtime, time.strftime = _now, _now_ns, _local, _utc, _written  # type: ignore[assignment]
