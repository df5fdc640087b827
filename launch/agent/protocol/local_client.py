"""Send requests to the agent of a run on this host, over a Unix socket.

The socket lies in the run's folder, and its path is relative to that folder. The path of a
Unix socket may not pass 107 bytes, and a working folder may be deep.
"""

import contextlib
import json
import os
import socket
from pathlib import Path
from typing import Any, Dict, Iterator


@contextlib.contextmanager
def inside(folder: Path) -> Iterator[None]:
    """Work in ``folder`` for a moment."""
    here = os.open(".", os.O_RDONLY)
    try:
        os.chdir(str(folder))
        yield
    finally:
        os.fchdir(here)
        os.close(here)


def connect(folder: Path, timeout_s: float) -> socket.socket:
    """Return a connection to the agent whose socket lies in ``folder``.

    Raises:
      OSError: no agent answers there.
    """
    caller = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    caller.settimeout(timeout_s)
    try:
        with inside(folder):
            caller.connect("agent.sock")
    except OSError:
        caller.close()
        raise
    return caller


def ask(folder: Path, request: Dict[str, Any], timeout_s: float = 10.0) -> Dict[str, Any]:
    """Send one request to the agent whose socket lies in ``folder``; return its first reply.

    Raises:
      OSError: no agent answers there in time.
    """
    for reply in replies(folder, request, timeout_s):
        return reply
    raise ConnectionResetError("the agent closed the connection")


def replies(folder: Path, request: Dict[str, Any], timeout_s: float = 10.0) -> Iterator[Dict[str, Any]]:
    """Send one request to the agent whose socket lies in ``folder``; yield its replies until it has sent all.

    Raises:
      OSError: no agent answers there, or there is no reply for ``timeout_s``.
    """
    with connect(folder, timeout_s) as caller:
        caller.sendall(json.dumps(request).encode() + b"\n")
        with caller.makefile("rb") as lines:
            yield from map(json.loads, lines)
