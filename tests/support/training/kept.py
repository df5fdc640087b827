"""Servers and sessions of TensorFlow inside the test's own process, which the product keeps until its process exits."""

import contextlib
import sys
import threading
import time
from typing import Any, Iterator, List

GRACE_S = 1.0
running: List[threading.Thread] = []  # the workers that tests run in threads


def serve(task: Any, server: Any) -> None:
    """Wait in a thread, as a parameter server, for the end of the run, or until its session is closed."""
    module = sys.modules["cluster.runtime.server"]
    with contextlib.suppress(module.tf.errors.CancelledError):
        module.wait_until_done(task, server)


@contextlib.contextmanager
def sessions_closed() -> Iterator[None]:
    """Close the sessions that begin inside, and forget them: the graphs of all tests would fill a machine's memory.

    Where a test gave up its run, with threads that wait for ever, sessions stay open: some never close.
    """
    before, began = set(map(id, _kept())), len(running)
    yield
    if _have_ended(running[began:]):
        begun = [made for made in _kept() if id(made) not in before and hasattr(made, "close")]
        closing = threading.Thread(target=_close, args=[begun], daemon=True)
        closing.start()
        if _have_ended([closing]):
            _kept()[:] = [made for made in _kept() if made not in begun]
            _forget_gradients()
    del running[began:]


def _have_ended(threads: List[threading.Thread]) -> bool:
    until = time.monotonic() + GRACE_S
    for thread in threads:
        thread.join(max(0.0, until - time.monotonic()))
    return not any(thread.is_alive() for thread in threads)


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
