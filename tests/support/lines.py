"""How many lines of Python run: what code costs, whatever else the machine is doing."""

import gc
import sys
from contextlib import contextmanager
from types import FrameType
from typing import Any, Callable, Iterator


@contextmanager
def counted() -> Iterator[Callable[[], int]]:
    """Yields a function that tells how many lines this thread has run in the block so far."""
    run = 0

    def note(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal run
        run += event == "line"
        return note

    before = sys.gettrace()
    gc.collect()
    gc.disable()  # it would run what other tests have left
    sys.settrace(note)
    try:
        yield lambda: run
    finally:
        sys.settrace(before)
        gc.enable()
