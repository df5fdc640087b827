"""An HTTP server on loopback that keeps the events that it gets."""

import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any, Dict, List, NamedTuple


class Got(NamedTuple):
    """One request that arrived."""

    verb: str
    path: str
    headers: Dict[str, str]
    body: Any


class HttpReceiver(HTTPServer):
    """Answer every request with one status, in a thread, until the block ends."""

    def __init__(self, status: int = 200):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.status = status
        self.got: List[Got] = []
        self.url = f"http://127.0.0.1:{self.server_address[1]}/key"
        self._thread = threading.Thread(target=self.serve_forever, args=(0.01,))

    def __enter__(self) -> "HttpReceiver":
        self._thread.start()
        return self

    def __exit__(self, *_: Any) -> None:
        self.shutdown()
        self._thread.join()
        self.server_close()


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        server: Any = self.server
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])).decode())
        server.got.append(Got(self.command, self.path, dict(self.headers), body))
        self.send_response(server.status)
        self.send_header("Location", "/elsewhere")
        self.send_header("Content-Length", "0")
        self.end_headers()

    do_GET = do_POST

    def log_message(self, *_: Any) -> None:
        """Print nothing."""
