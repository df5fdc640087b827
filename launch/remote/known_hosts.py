"""Known hosts: the keys of hosts, revoked keys, and whether an authority signs the keys of a host.

The files have OpenSSH's format: names are plain, hashed or patterns, and a line may begin with ``@cert-authority`` or
``@revoked``. A host's keys are those of all lines of all files.
"""

import contextlib
import os
import re
from typing import Dict, Iterator, List, NamedTuple, Sequence, Tuple

import paramiko
from paramiko.hostkeys import HostKeyEntry, InvalidHostKey

AUTHORITY, REVOKED = "@cert-authority", "@revoked"
_HASHED = "|1|"


class Trust(NamedTuple):
    """The keys that the files have for one host."""

    keys: Tuple[paramiko.PKey, ...] = ()
    authorities: Tuple[paramiko.PKey, ...] = ()
    revoked: Tuple[paramiko.PKey, ...] = ()


class KnownHosts:
    """The lines of all files of known hosts in ``paths``; an unreadable file counts as empty."""

    def __init__(self, paths: Sequence[str]):
        self._lines = [line for path in paths for line in _lines(os.path.expanduser(path))]

    def about(self, *names: str) -> Trust:
        """Return the known keys of the host that has all of ``names``.

        The host's own keys are those of the first name, under which OpenSSH records keys. Authorities and revoked keys
        count under any of the names.
        """
        found: Dict[str, List[paramiko.PKey]] = {"": [], AUTHORITY: [], REVOKED: []}
        for marker, patterns, rest in self._lines:
            if marker in found and any(matches(patterns, name) for name in (names if marker else names[:1])):
                found[marker] += _key(rest)
        return Trust(*map(tuple, found.values()))


def matches(patterns: str, name: str) -> bool:
    """Return whether patterns such as ``*.example.com,!gw.example.com``, or a hashed name, match a host."""
    name = name.lower()
    fits = [(each.startswith("!"), _matches(each.lstrip("!"), name)) for each in patterns.split(",")]
    return any(fit for negated, fit in fits if not negated) and not any(fit for negated, fit in fits if negated)


def _matches(pattern: str, name: str) -> bool:
    if pattern.startswith(_HASHED):
        return _is_hash_of(pattern, name)
    wildcards = re.escape(pattern.lower()).replace(r"\*", ".*").replace(r"\?", ".")
    return re.fullmatch(wildcards, name) is not None


def _is_hash_of(hashed: str, name: str) -> bool:
    try:
        return bool(paramiko.HostKeys.hash_host(name, hashed) == hashed)
    except (ValueError, AssertionError, IndexError):  # a damaged line
        return False


def _lines(path: str) -> Iterator[Tuple[str, str, str]]:
    """Yield the marker, the names and the key of each line."""
    with contextlib.suppress(OSError), open(path, encoding="utf-8", errors="replace") as file:
        for line in file:
            marker, _, rest = line.strip().partition(" ") if line.startswith("@") else ("", "", line.strip())
            names, _, key = rest.strip().partition(" ")
            if key and not names.startswith("#"):
                yield marker, names, key


def _key(text: str) -> List[paramiko.PKey]:
    """Return a list with the key in ``ssh-ed25519 AAAA… comment``; empty for an unknown kind of key."""
    try:
        entry = HostKeyEntry.from_line(f"name {text}")
    except (paramiko.SSHException, InvalidHostKey):
        return []
    return [entry.key] if entry is not None else []
