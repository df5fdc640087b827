"""Wait for an event elsewhere, with a timeout, and print the purpose of the wait."""

import socket
import time
from typing import Callable

TIMEOUT_S = 600.0  # other hosts may still be installing, or loading data
_REPORT_S = 5.0
_CONNECT_S = 1.0


def wait_for(what: str, condition: Callable[[], bool], timeout_s: float = TIMEOUT_S, poll_s: float = 0.1) -> None:
    """Poll ``condition`` until it holds; print ``what`` on stdout every few seconds.

    Raises:
      TimeoutError: ``condition`` did not hold within ``timeout_s``.
    """
    start = reported = time.monotonic()
    while not condition():
        now = time.monotonic()
        if now - start > timeout_s:
            raise TimeoutError(f"waited {timeout_s:.0f} s for {what}; see the logs of the awaited tasks")
        if now - reported >= _REPORT_S:
            reported = now
            print(f"waiting for {what} ({now - start:.0f} s)", flush=True)
        time.sleep(poll_s)


def wait_for_server(name: str, address: str) -> None:
    """Wait until a task's server listens: a session would wait for the server without a limit, and print nothing.

    Raises:
      TimeoutError: the server does not listen.
    """
    wait_for(f"{name} at {address}", lambda: listens(address), poll_s=0.05)


def listens(address: str) -> bool:
    """Return whether a process accepts connections at ``host:port``."""
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), _CONNECT_S).close()
    except OSError:
        return False
    return True
