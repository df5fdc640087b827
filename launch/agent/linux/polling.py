"""Waiting until a file has something to read, also in a process with more than the 1024 files that ``select`` knows."""

import math
import select
from typing import Any, Optional


def readable(file: Any, timeout_s: Optional[float]) -> bool:
    """Return whether ``file`` has something to read, or its end, within ``timeout_s``.

    With None the function waits as long as it takes.
    """
    poller = select.poll()
    poller.register(file, select.POLLIN)
    return bool(poller.poll(None if timeout_s is None else math.ceil(1000 * max(0.0, timeout_s))))
