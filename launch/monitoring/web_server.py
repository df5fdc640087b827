"""An HTTP server on this machine that answers while a verb runs, whatever its clients send or leave out."""

import contextlib
import socket
import sys
import threading
from socketserver import ThreadingMixIn
from typing import Any, Callable, Iterator, cast
from wsgiref.handlers import SimpleHandler
from wsgiref.simple_server import ServerHandler, WSGIRequestHandler, WSGIServer, make_server

from launch.errors import CannotStart, HostProblem

LOOK_S = 0.2
REQUEST_S = 10.0  # in which a client must send its request, and then take the answer
LONGEST = 1 << 16  # bytes of the first line
MOST_THREADS = 128  # of this process; a further client is refused


class _Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True
    request_queue_size = MOST_THREADS

    def verify_request(self, request: Any, client_address: Any) -> bool:
        """Return whether the server may start another thread, to answer the client."""
        return threading.active_count() < MOST_THREADS

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Report an error of this program; report nothing where the client has closed the connection."""
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)


class _Answer(ServerHandler):
    def log_exception(self, exc_info: Any) -> None:
        """Report an error of this program; report nothing where the client has closed the connection."""
        if not isinstance(exc_info[1], OSError):
            super().log_exception(exc_info)

    def close(self) -> None:
        """End the answer without printing a line about it: after the loss of the client, no status exists to print."""
        SimpleHandler.close(self)


class _Quiet(WSGIRequestHandler):
    timeout = REQUEST_S  # without a byte

    def handle(self) -> None:
        """Answer one request that arrives completely within ``REQUEST_S`` seconds, however slowly its bytes arrive."""
        with self._in_time():
            self.raw_requestline = self.rfile.readline(LONGEST + 1)
            if len(self.raw_requestline) > LONGEST:
                self.requestline, self.request_version, self.command = "", "", ""
                self.send_error(414)
            if len(self.raw_requestline) > LONGEST or not self.parse_request():
                return
        answer: Any = _Answer(self.rfile, self.wfile, self.get_stderr(), self.get_environ())
        answer.request_handler, server = self, cast(WSGIServer, self.server)
        answer.run(server.get_app())

    @contextlib.contextmanager
    def _in_time(self) -> Iterator[None]:
        end = threading.Timer(REQUEST_S, self._cut)
        end.daemon = True
        end.start()
        try:
            yield
        finally:
            end.cancel()

    def _cut(self) -> None:
        with contextlib.suppress(OSError):  # the client was faster
            self.connection.shutdown(socket.SHUT_RDWR)

    def log_message(self, *_: Any) -> None:
        """Print nothing, because a line for every request is of no use."""


class WebServer:
    """A server for a WSGI application, which listens inside a ``with`` block.

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
        """Answer requests until ``over`` returns True."""
        while not over():
            self._server.handle_request()
