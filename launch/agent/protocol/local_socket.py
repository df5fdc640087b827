"""The Unix socket of a run's agent on this host, as local callers use it: a caller sends requests to the agent.

A caller sends one JSON line, and the agent (``service.agent.Clients``) answers with one or many. The socket lies in the
run's own folder (mode 0700), so only the user who started the run can reach the socket. Programs name the socket by a
path relative to that folder: the path of a Unix socket has at most 107 bytes, and a working folder may be deep.

``attach`` copies lines in both directions between the launcher and the agent until one of them ends.
"""

import contextlib
import json
import os
import select
import socket
from pathlib import Path
from typing import Any, Callable, Dict, Iterator

from launch.agent.state.run_folder import RunFolder, expand
from launch.agent.wire.verb_requests import RunReference


@contextlib.contextmanager
def inside(folder: Path) -> Iterator[None]:
    """Make ``folder`` the current working directory of this process within the context."""
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


def ask_agent(folder: Path, request: Dict[str, Any], timeout_s: float = 10.0) -> Dict[str, Any]:
    """Send one request to the agent whose socket lies in ``folder``; return its first reply.

    Raises:
      OSError: no agent answers there in time.
    """
    for reply in replies(folder, request, timeout_s):
        return reply
    raise ConnectionResetError("the agent closed the connection")


def replies(folder: Path, request: Dict[str, Any], timeout_s: float = 10.0) -> Iterator[Dict[str, Any]]:
    """Send one request to the agent whose socket lies in ``folder``; yield its replies until the last one.

    Raises:
      OSError: no agent answers there, or no reply arrives for ``timeout_s``.
    """
    with connect(folder, timeout_s) as caller:
        caller.sendall(json.dumps(request).encode() + b"\n")
        with caller.makefile("rb") as lines:
            yield from map(json.loads, lines)


CHUNK = 65536


def attach(reference: RunReference, send: Callable[[Dict[str, Any]], None]) -> None:
    """Copy lines in both directions between the launcher, on stdin and stdout, and the agent until either ends.

    ``send`` receives {"error"} where no agent of the run answers.
    """
    folder = RunFolder(expand(reference.workdir), reference.run or "", reference.host)
    try:
        agent = connect(folder.own, timeout_s=10.0)
    except OSError as error:
        send({"error": f"no agent of {reference.run} answers on this host: {error}"})
        return
    agent.settimeout(None)
    with agent:
        while True:
            for ready in select.select([0, agent], [], [])[0]:
                data = os.read(0, CHUNK) if ready == 0 else agent.recv(CHUNK)
                if not data:
                    return
                if ready == 0:
                    agent.sendall(data)
                else:
                    _write_all(data)


def _write_all(data: bytes) -> None:
    while data:
        data = data[os.write(1, data) :]
