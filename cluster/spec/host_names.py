"""Names of hosts in a hosts file: ``gpu01``, ``gpu01:2222``, ranges such as ``gpu[01-04]``, IP addresses."""

import ipaddress
import re
from collections import Counter
from functools import reduce
from itertools import product
from operator import mul
from typing import List, NamedTuple, Optional, Tuple

from ClusterShell.RangeSet import RangeSet, RangeSetException

_RANGE = re.compile(r"\[([^\[\]]*)\]")
_NUMBERS = re.compile(r"[0-9]+(-[0-9]+(/[0-9]+)?)?(,[0-9]+(-[0-9]+(/[0-9]+)?)?)*")
_NAME = re.compile(r"[A-Za-z0-9_]([A-Za-z0-9_.-]*[A-Za-z0-9_])?")
_LIMIT = 100_000  # hosts in one range; a larger number is a typing error


class HostError(Exception):
    """The error of a text that names no hosts. Its arguments are the expected value, the value found, and a hint."""

    def __init__(self, expected: str, found: str, hint: str = ""):
        super().__init__(expected, found, hint)
        self.expected, self.found, self.hint = expected, found, hint


class Endpoint(NamedTuple):
    """Hosts, and the port written after them."""

    hosts: Tuple[str, ...]
    port: Optional[int] = None


def endpoint(text: str) -> Endpoint:
    """Return the hosts and the port that ``text`` names, such as ``gpu[01-04]:2222``.

    An IPv6 address that a port follows is in brackets: ``[::1]:2222``.

    Raises:
      HostError: the text is neither a host nor a range, or its port is invalid.
    """
    host, port = split_port(text)
    return Endpoint(hosts(host), None if port is None else _port(port))


def split_port(text: str) -> Tuple[str, Optional[str]]:
    """Return the part of ``text`` before its port, and the port as a text; None in place of a missing port."""
    bracketed = re.fullmatch(r"\[(.*:.*:.*)\](:.*)?", text)
    if bracketed or text.count(":") > 1:
        address, port = bracketed.groups() if bracketed else (text, None)
        return str(address), None if port is None else str(port[1:])
    host, colon, port = text.partition(":")
    return host, port if colon else None


def hosts(text: str) -> Tuple[str, ...]:
    """Return the hosts that ``text`` names, such as ``rack[1-2]n[01-16]``, in their natural order.

    Raises:
      HostError: the text is neither a host nor a range, or contains a host twice.
    """
    if ":" in text:
        return (_ip6(text),)
    parts = _RANGE.split(text)  # text, range, text, range, ..., text
    _check("0".join(parts[::2]), text)
    expanded = [[part] if i % 2 == 0 else _expanded(part) for i, part in enumerate(parts)]
    _bound(reduce(mul, map(len, expanded)), text)
    return tuple("".join(name) for name in product(*expanded))


def _check(name: str, text: str) -> None:
    if "," in name:
        raise HostError("one host or one range", f"'{text}'", "write each as a separate item of the list")
    if "@" in name:
        raise HostError("a host without a user", f"'{text}'", "name the user in ssh.user or in the SSH configuration")
    if not _NAME.fullmatch(name):
        raise HostError('a host such as gpu01 or a range such as "gpu[01-04]"', f"'{text}'")


def _expanded(numbers: str) -> List[str]:
    if not _NUMBERS.fullmatch(numbers):
        raise HostError("a range such as [01-04] or [1-4,7]", f"'[{numbers}]'")
    _bound(sum(int(last) - int(first) for first, last in re.findall("([0-9]+)-([0-9]+)", numbers)), f"[{numbers}]")
    try:
        # RangeSet drops duplicates, so the code counts the pieces between the commas one by one.
        pieces = Counter(name for piece in numbers.split(",") for name in RangeSet(piece).striter())
        names = list(RangeSet(numbers).striter())
    except RangeSetException:
        expected = "an ascending range with equal zero padding at both ends, such as [01-04] or [001-100]"
        raise HostError(expected, f"'[{numbers}]'") from None
    twice = [name for name in names if pieces[name] > 1]
    if twice:
        raise HostError("each number once in a range", f"{twice[0]} twice in '[{numbers}]'")
    return names


def _bound(size: int, text: str) -> None:
    if size > _LIMIT:
        raise HostError(f"at most {_LIMIT} hosts in a range", f"'{text}'")


def _ip6(text: str) -> str:
    try:
        return str(ipaddress.IPv6Address(text.strip("[]")))
    except ValueError:
        raise HostError("host, host:port, or an IPv6 address such as fd00::1 or [fd00::1]:2222", f"'{text}'") from None


def _port(text: str) -> int:
    if not text.isdigit() or not 1 <= int(text) <= 65535:
        raise HostError("a port from 1 to 65535", f"'{text}'")
    return int(text)
