"""A program that posts an event to a URL. It is started by its path, and needs only Python's standard library.

The program reads one JSON line, {"url", "headers", "event"}. If the receiver does not accept the event, the program
prints a line with the reason. The line never has a part of the URL or of a header, which may be secret.
"""

import http.client
import json
import socket
import ssl
import sys
import urllib.error
import urllib.request
from typing import Any, Dict, NamedTuple

TAKEN, LATER, NEVER = 0, 1, 2  # exit codes: after LATER, a retry may succeed
ANSWER_S = 8.0  # for each wait: for the connection, the writing, the answer
PASSING = (408, 425, 429)  # answers below 500 after which a retry may succeed


class Answer(NamedTuple):
    """The exit code of this program, and the line that it prints."""

    code: int
    line: str = ""


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Follow no redirect, which would become a GET without the event."""

    def redirect_request(self, *_: Any) -> None:
        """Return None, so that no request follows the redirect."""


def post(url: str, headers: Dict[str, str], event: Dict[str, Any], timeout_s: float = ANSWER_S) -> Answer:
    """Send the event to a URL by POST, and return the result as this program's exit code and line."""
    try:
        request = urllib.request.Request(url, json.dumps(event).encode(), method="POST")
        for name, value in {"Content-Type": "application/json", "User-Agent": "launch", **headers}.items():
            request.add_header(name, value)
        with urllib.request.build_opener(_NoRedirect).open(request, timeout=timeout_s):
            return Answer(TAKEN)
    except urllib.error.HTTPError as error:
        return _refused(error)
    except OSError as error:
        return Answer(LATER, _unreached(error, timeout_s))
    except (ValueError, http.client.InvalidURL) as error:  # its text may contain a part of the URL, or a header
        return Answer(NEVER, f"its URL or a header cannot be used ({type(error).__name__})")
    except http.client.HTTPException as error:
        return Answer(LATER, f"its answer is not HTTP ({type(error).__name__})")


def _refused(error: urllib.error.HTTPError) -> Answer:
    with error:
        again = error.code >= 500 or error.code in PASSING
        redirect = ", a redirect, which is not followed" if 300 <= error.code < 400 else ""
        return Answer(LATER if again else NEVER, f"it answered {error.code} {error.reason}{redirect}")


def _unreached(error: OSError, timeout_s: float) -> str:
    reason: Any = getattr(error, "reason", error)  # a URLError contains another error
    if isinstance(reason, socket.timeout):
        return f"no answer within {timeout_s:.0f} s"
    if isinstance(reason, ssl.SSLError):
        why = getattr(reason, "verify_message", None) or reason.reason or type(reason).__name__
        return f"no secure connection: {why}"
    return f"no connection: {getattr(reason, 'strerror', None) or type(reason).__name__}"


def main() -> int:
    """Post the event on stdin; return the exit code."""
    answer = post(**json.loads(sys.stdin.readline()))
    if answer.line:
        print(answer.line)
    return answer.code


if __name__ == "__main__":
    sys.exit(main())
