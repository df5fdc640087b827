"""Servers and sessions of TensorFlow inside the test's own process, which the product keeps until its process exits."""

import atexit
import contextlib
import ctypes
import sys
import threading
from typing import Any, Iterator, List

GRACE_S = 3.0


@contextlib.contextmanager
def sessions_closed() -> Iterator[None]:
    """Close the sessions that begin inside, and forget them: the graphs of all tests would fill a machine's memory."""
    before = set(map(id, _kept()))
    yield
    begun = [made for made in _kept() if id(made) not in before and hasattr(made, "close")]
    closing = threading.Thread(target=_close, args=[begun], daemon=True)
    closing.start()
    closing.join(GRACE_S)  # a session of a run that was given up may never close
    if not closing.is_alive():
        _kept()[:] = [made for made in _kept() if made not in begun]
    _forget_gradients()


@atexit.register
def never_destroy() -> None:
    """Keep what is left beyond the end of the interpreter, where the destructor of a server fails."""
    for made in _kept():
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(made))


def _close(sessions: List[Any]) -> None:
    for session in sessions:
        with contextlib.suppress(Exception):  # it has been closed, or has failed
            session.close()


def _forget_gradients() -> None:
    """Drop the gradients of functions, by which TensorFlow's registry holds every graph that has had a function."""
    ops: Any = sys.modules.get("tensorflow.python.framework.ops")
    if ops is None:
        return
    registry = (getattr(ops, "gradient_registry", None) or ops._gradient_registry)._registry  # TensorFlow 2.x, 1.15
    for name in [name for name in registry if name.startswith("PartitionedCall-")]:
        del registry[name]


def _kept() -> List[Any]:
    server: Any = sys.modules.get("cluster.runtime.server")  # absent in a process without TensorFlow
    kept: List[Any] = server._kept if server else []
    return kept
