"""An HTTP server on this machine that answers while a verb runs."""

import socket
from socketserver import ThreadingMixIn
from typing import Any, Callable
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from launch.errors import CannotStart, HostProblem

LOOK_S = 0.2
REQUEST_S = 10.0  # in which a client must send its request


class _Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True


class _Quiet(WSGIRequestHandler):
    timeout = REQUEST_S

    def log_message(self, *_: Any) -> None:
        """Print nothing, because a line for every request is of no use."""


class WebServer:
    """Listen for requests to a WSGI application while entered.

    Raises:
      CannotStart: the address is taken, or not an address of this machine.
    """

    def __init__(self, application: Any, address: str, port: int):
        kind = type("Server", (_Server,), {"address_family": socket.AF_INET6 if ":" in address else socket.AF_INET})
        try:
            self._server: Any = make_server(address, port, application, kind, _Quiet)
        except OSError as error:
            refused = f"cannot listen on {address} port {port}: {error.strerror}"
            advice = "give another --port or --address"
            raise CannotStart([HostProblem.here(refused, advice)]) from error
        self.port: int = self._server.server_address[1]
        self._server.timeout = LOOK_S

    def __enter__(self) -> "WebServer":
        return self

    def __exit__(self, *_: object) -> None:
        self._server.server_close()

    def serve(self, over: Callable[[], bool]) -> None:
        """Answer requests until ``over``."""
        while not over():
            self._server.handle_request()
