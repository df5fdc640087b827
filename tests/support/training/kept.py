"""Servers and sessions of TensorFlow inside the test's own process, which the product keeps until its process exits."""

import atexit
import contextlib
import ctypes
import sys
import threading
import time
from typing import Any, Iterator, List

GRACE_S = 1.0
running: List[threading.Thread] = []  # the workers that tests run in threads


@contextlib.contextmanager
def sessions_closed() -> Iterator[None]:
    """Close the sessions that begin inside, and forget them: the graphs of all tests would fill a machine's memory.

    Where a test gave up its run, with threads that wait for ever, sessions stay open: some never close.
    """
    before, began = set(map(id, _kept())), len(running)
    yield
    if _have_ended(running[began:]):
        begun = [made for made in _kept() if id(made) not in before and hasattr(made, "close")]
        closing = threading.Thread(target=close, args=[begun], daemon=True)
        closing.start()
        if _have_ended([closing]):
            forget(begun)
    del running[began:]


def _have_ended(threads: List[threading.Thread]) -> bool:
    until = time.monotonic() + GRACE_S
    for thread in threads:
        thread.join(max(0.0, until - time.monotonic()))
    return not any(thread.is_alive() for thread in threads)


def close(sessions: List[Any]) -> None:
    """Close sessions, also those that have failed."""
    for session in sessions:
        with contextlib.suppress(Exception):
            session.close()


def forget(sessions: List[Any]) -> None:
    """Keep closed sessions no longer, nor the gradients of functions, by which TensorFlow's registry holds graphs."""
    _kept()[:] = [made for made in _kept() if made not in sessions]
    ops: Any = sys.modules.get("tensorflow.python.framework.ops")
    if ops is None:
        return
    registry = (getattr(ops, "gradient_registry", None) or ops._gradient_registry)._registry  # TensorFlow 2.x, 1.15
    for name in [name for name in registry if name.startswith("PartitionedCall-")]:
        del registry[name]


@atexit.register
def never_destroy() -> None:
    """Keep what is left beyond the end of the interpreter, where the destructor of a server fails."""
    for made in _kept():
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(made))


def _kept() -> List[Any]:
    server: Any = sys.modules.get("cluster.runtime.server")  # absent in a process without TensorFlow
    kept: List[Any] = server._kept if server else []
    return kept
