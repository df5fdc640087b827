"""``launch view``: the page of the newest run with its recorded values, served only to this user's browser."""

import hmac
import threading
from http import HTTPStatus
from typing import Any, Callable, Dict, Iterable, List, Optional, Tuple

from launch.monitoring.newest_state import LeadAnswer
from launch.page.run_page import as_json, document, facts
from launch.status.run import RunStatus

EVERY_S = 1.0
LOGS_EVERY_S = 3.0
STEPS_EVERY_S = 5.0
LEAVE_S = 2.0  # for a call in progress at the end
HEADERS = [
    ("Cache-Control", "no-store"),
    ("Content-Security-Policy", "frame-ancestors 'none'"),  # the page has the rest of the policy
    ("Cross-Origin-Resource-Policy", "same-origin"),
    ("Referrer-Policy", "no-referrer"),
    ("X-Content-Type-Options", "nosniff"),
]

Answer = Tuple[HTTPStatus, str, str]  # the status, the content's type, the content
NOT_FOUND: Answer = (HTTPStatus.NOT_FOUND, "text/plain", "expected the path that `launch view` printed\n")


class OnDemand:
    """The newest result of a function that runs only while pages ask for results; None before the first call."""

    def __init__(self, read: Callable[[], Dict[str, Any]]):
        self._read, self._wanted = read, threading.Event()
        self.newest: Optional[Dict[str, Any]] = None

    def ask(self) -> Optional[Dict[str, Any]]:
        """Return the newest result, and request another call."""
        self._wanted.set()
        return self.newest

    def record(self) -> None:
        """Call the function, if a page has asked for a result since the last call."""
        if self._wanted.is_set():
            self._wanted.clear()
            self.newest = self._read()


class PageServer:
    """The WSGI application of the page.

    The application refuses requests without the token, and requests from a page of another site whose name resolves to
    this machine. Every other request is answered at once, with the values that were recorded last.

    Args:
      status: the newest status of the run, from the verb's start.
      token: the first part of every path.
      get: fetch the newest status; may take seconds.
      logs: read the last lines of the logs; may take seconds.
      steps: read the newest steps of the tasks, given the newest status; may take seconds.
    """

    def __init__(
        self,
        status: RunStatus,
        token: str,
        get: Callable[[], LeadAnswer],
        logs: Callable[[], Dict[str, Any]],
        steps: Callable[[RunStatus], Dict[str, Any]],
    ):
        self._token, self._get = token, get
        self._problem: Optional[str] = None
        self.logs, self.steps = OnDemand(logs), OnDemand(lambda: steps(self._status))
        self._take(status)

    def record(self) -> None:
        """Fetch and store the newest status. Without an answer, keep the last status, and store the reason."""
        answer = self._get()
        if answer.status is not None:
            self._take(answer.status)
        gone = None if answer.status else "no run of this name is there any more"
        self._problem = answer.problem or gone

    def _take(self, status: RunStatus) -> None:
        self._status = status
        self._facts = facts(status)

    def __call__(self, environ: Dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        status, kind, text = self._answer(environ)
        content = text.encode("utf-8", "replace")
        headers = [*HEADERS, ("Content-Type", f"{kind}; charset=utf-8"), ("Content-Length", str(len(content)))]
        start_response(f"{status.value} {status.phrase}", headers)
        return [content]

    def _answer(self, environ: Dict[str, Any]) -> Answer:
        port = environ["SERVER_PORT"]
        if environ.get("HTTP_HOST") not in (f"127.0.0.1:{port}", f"localhost:{port}"):
            return HTTPStatus.FORBIDDEN, "text/plain", "expected the address that `launch view` printed\n"
        if environ["REQUEST_METHOD"] != "GET":
            return HTTPStatus.METHOD_NOT_ALLOWED, "text/plain", "expected GET\n"
        parts = environ["PATH_INFO"].split("/", 2)
        if len(parts) < 3:
            return NOT_FOUND
        _, token, name = parts
        if not hmac.compare_digest(token.encode("utf-8", "replace"), self._token.encode()):
            return NOT_FOUND
        return self._page(name)

    def _page(self, name: str) -> Answer:
        if name == "":
            page = document(self._facts, self.logs.newest, live=True, steps=self.steps.newest)
            return HTTPStatus.OK, "text/html", page
        if name == "status.json":
            values: Any = {"facts": self._facts, "problem": self._problem}
        elif name == "logs.json":
            values = self.logs.ask()
        elif name == "steps.json":
            values = self.steps.ask()
        else:
            return NOT_FOUND
        return HTTPStatus.OK, "application/json", as_json(values)


class Repeated:
    """Functions that threads call repeatedly inside a ``with`` block: [(function, seconds between calls)]."""

    def __init__(self, calls: List[Tuple[Callable[[], None], float]]):
        self._over = threading.Event()
        self._threads = [threading.Thread(target=self._repeat, args=call, daemon=True) for call in calls]

    def _repeat(self, function: Callable[[], None], every_s: float) -> None:
        while not self._over.wait(every_s):
            function()

    def __enter__(self) -> "Repeated":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join(LEAVE_S)
