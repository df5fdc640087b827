"""Speaking to the agent of a run on this host, over the Unix socket in the run's folder.

The socket is found relative to that folder, because the path of a Unix socket may not
pass 107 bytes and a working folder may be deep.
"""

import contextlib
import json
import os
import socket
from pathlib import Path
from typing import Any, Dict, Iterator


@contextlib.contextmanager
def inside(folder: Path) -> Iterator[None]:
    """Works in ``folder`` for a moment."""
    here = os.open(".", os.O_RDONLY)
    try:
        os.chdir(str(folder))
        yield
    finally:
        os.fchdir(here)
        os.close(here)


def connect(folder: Path, timeout_s: float) -> socket.socket:
    """A connection to the agent whose socket lies in ``folder``.

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
    """One request to the agent whose socket lies in ``folder``, and its first reply.

    Raises:
      OSError: no agent answers there in time.
    """
    with connect(folder, timeout_s) as caller:
        caller.sendall(json.dumps(request).encode() + b"\n")
        with caller.makefile("rb") as replies:
            line = replies.readline()
    if not line:
        raise ConnectionResetError("the agent closed the connection")
    reply: Dict[str, Any] = json.loads(line.decode())
    return reply
