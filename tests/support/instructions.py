"""How many instructions of Python run: what code costs, whatever else the machine is doing.

A comprehension is one line, however long it takes.
"""

import gc
import sys
from contextlib import contextmanager
from types import FrameType
from typing import Any, Callable, Iterator


@contextmanager
def counted() -> Iterator[Callable[[], int]]:
    """Yields a function that tells how many instructions this thread has run in the block so far."""
    run = 0

    def note(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal run
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        run += event == "opcode"
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
