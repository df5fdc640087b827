"""What a verb serves on this machine, fetched past any proxy."""

import re
import signal
import urllib.request
from contextlib import contextmanager
from typing import TYPE_CHECKING, Iterator

from tests.support.waiting import PATIENCE_S

if TYPE_CHECKING:
    from tests.support.launch.launcher import Running


@contextmanager
def served(verb: "Running") -> Iterator[str]:
    """The URL that a running verb prints; in the end it gets Ctrl-C, which must end it with 130."""
    with verb:
        try:
            assert verb.stdout is not None and verb.stderr is not None
            line = verb.stdout.readline()
            found = re.search(r"http://[^ ]+", line)
            assert found, line + verb.stderr.read()
            yield found[0]
            verb.send_signal(signal.SIGINT)
            assert verb.wait(PATIENCE_S) == 128 + signal.SIGINT
        finally:
            verb.kill()


def fetch(url: str) -> str:
    """The text at ``url``. Raises URLError where nothing answers."""
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with direct.open(url, timeout=PATIENCE_S) as answer:
        text: str = answer.read().decode()
    return text
