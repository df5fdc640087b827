"""The addresses of a cluster's names on this host.

The system's resolver takes no time limit, so it runs in threads; nobody waits for a thread beyond the limit. The
resolver looks a name up once, however many addresses have the name.
"""

import ipaddress
import socket
import threading
import time
from collections import deque
from typing import Deque, Dict, List, Sequence, Union

AT_ONCE = 64
Meaning = Union[List[str], str]  # addresses, or why there is none


def resolve(names: Sequence[str], timeout_s: float) -> Dict[str, Meaning]:
    """The addresses of each name, in the order in which a connection tries them; or why it has none."""
    waiting: Deque[str] = deque(dict.fromkeys(names))
    found: Dict[str, Meaning] = {}

    def work() -> None:
        while True:
            try:
                name = waiting.popleft()
            except IndexError:  # not looked for first: another thread may take the last one
                return
            found[name] = _addresses(name)

    until = time.monotonic() + timeout_s
    threads = [threading.Thread(target=work, daemon=True) for _ in range(min(AT_ONCE, len(waiting)))]
    wanted = list(waiting)
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(max(0.0, until - time.monotonic()))
    return {name: found.get(name, f"no answer from the resolver within {timeout_s:.0f} s") for name in wanted}


def _addresses(name: str) -> Meaning:
    try:
        found = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        return getattr(error, "strerror", None) or str(error)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


def is_loopback(address: str) -> bool:
    """Return whether an address means the very host that uses it."""
    return ipaddress.ip_address(address.split("%")[0]).is_loopback
