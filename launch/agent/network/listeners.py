"""Ports of this host, opened for a moment so that ``launch check`` can knock on them.

Only our own listener can give the answer behind each port. A caller that sends the check's first word receives its
second word, this host's name and the port. So a caller recognises whatever else answers at an address, such as a
proxy or another machine of that name.
"""

import errno
import json
import os
import socket
import socketserver
import threading
import time
from typing import Any, Dict, List, Optional, Sequence

from launch.agent.linux import ports
from launch.agent.linux.processes import environment

CALL_S = 5.0  # for a caller to say its word
CALLERS = 512  # of one door at a time: each takes a thread, and strangers can call too
LONGEST_LINE = 4096
POLL_S = 0.05  # how soon a door notices that it is closed
LEAVING_S = 1.0  # for callers that have their answer to hang up


class _Caller(socketserver.StreamRequestHandler):
    timeout = CALL_S
    server: "_Door"

    def handle(self) -> None:
        try:
            if self.rfile.readline(LONGEST_LINE).strip() == self.server.call:
                self.wfile.write(self.server.answer)
                self.rfile.read(1)  # the caller hangs up first: else this port would be in TIME_WAIT for a minute
        except OSError:  # it said nothing, or has gone
            return


class _Door(socketserver.ThreadingTCPServer):
    """One open port, on every interface and in both address families, as TensorFlow's server has it."""

    allow_reuse_address = True
    daemon_threads = True
    block_on_close = False
    request_queue_size = 1024

    def __init__(self, port: int, call: bytes, answer: bytes):
        self.call, self.answer = call, answer
        self._places = threading.BoundedSemaphore(CALLERS)
        self.address_family = _family()
        super().__init__(("", port), _Caller)

    def server_bind(self) -> None:
        if self.address_family == socket.AF_INET6:
            self.socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        super().server_bind()

    def process_request(self, request: Any, client_address: Any) -> None:
        """Serve a caller in a thread; close the connection where all places are taken."""
        if self._places.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Serve a caller, and free its place when the caller has left."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._places.release()

    def server_close(self) -> None:
        """Close the door, and wait a moment for the last callers: their connections hold the port as well."""
        super().server_close()
        end = time.monotonic() + LEAVING_S
        for _ in range(CALLERS):
            if not self._places.acquire(timeout=max(0.0, end - time.monotonic())):
                return

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore a caller that breaks off."""


class Doors:
    """The ports that are open until ``with`` ends, or the process does.

    Args:
      words: the word that a caller sends, and the word that it receives.
      host: this host's name in the hosts file.
    """

    def __init__(self, words: Sequence[str], host: str):
        self._call, self._reply, self._host = words[0].encode(), words[1], host
        self._open: List[_Door] = []

    def open(self, wanted: Sequence[int]) -> Dict[str, Optional[Dict[str, Any]]]:
        """Opens ports: {port: None where it is open, else who holds it}."""
        return {str(port): self._try(port) for port in wanted}

    def _try(self, port: int) -> Optional[Dict[str, Any]]:
        answer = json.dumps({"word": self._reply, "host": self._host, "port": port}).encode() + b"\n"
        try:
            door = _Door(port, self._call, answer)
        except OSError as error:
            return held(port) if error.errno == errno.EADDRINUSE else {"why": os.strerror(error.errno or 0)}
        threading.Thread(target=door.serve_forever, args=(POLL_S,), daemon=True).start()
        self._open.append(door)
        return None

    def __enter__(self) -> "Doors":
        return self

    def __exit__(self, *_: object) -> None:
        for door in self._open:
            door.shutdown()
            door.server_close()


def held(port: int) -> Dict[str, Any]:
    """Return the holder of a port: {"why", "pid", "run"}.

    ``run`` is None unless the holder is a task or an agent of a launched run.
    """
    pid = ports.holder(port)
    return {
        "why": f"taken by {ports.describe_holder(port)}", "pid": pid,
        "run": environment(pid).get("LAUNCH_RUN") if pid else None,
    }  # fmt: skip


def _family() -> socket.AddressFamily:
    """IPv6, whose sockets take IPv4 as well; IPv4 where this host has no other."""
    try:
        with socket.socket(socket.AF_INET6, socket.SOCK_STREAM) as probe:
            probe.bind(("::", 0))
    except OSError:
        return socket.AF_INET
    return socket.AF_INET6
