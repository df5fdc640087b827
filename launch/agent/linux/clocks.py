"""A clock that goes on while this machine is suspended."""

import time


def since_boot() -> float:
    """Return the seconds since this machine booted, those of its suspension included."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)
