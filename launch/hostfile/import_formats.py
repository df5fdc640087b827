"""Read the host lists of other launchers.

The lists are the host files of MPI and DeepSpeed, and Horovod's ``-H``. A *slot* is a place for one process of these
programs, in most clusters one GPU. A host that is listed several times has the slots of all its lines.
"""

import re
from pathlib import Path
from typing import Callable, Dict, Iterable, Iterator, List, NamedTuple, Optional, Sequence, Tuple

from cluster.errors import Problem, SpecError
from cluster.spec.host_names import HostError, hosts, split_port

MOST_SLOTS = 1024
_SLOTS = "a number of slots from 1 to 1024"
_LIMITS = ("max_slots", "max-slots")  # the most processes on a host; the slots are never more
_USERS = ("user", "username")
_WITH_USER = re.compile(r"(?P<user>[\w.+$\\][\w.+$\\@-]*)@(?P<host>[^@]+)")


class Listed(NamedTuple):
    """A host, its slots, and the user to log in as; None if the list has no number of slots, or no user."""

    host: str
    slots: Optional[int]
    user: Optional[str] = None


class WrongEntry(Exception):
    """An invalid entry. The arguments are the expected value, the found value, and a hint."""


Line = Tuple[Optional[int], str]  # the number, None outside of a file, and the text
Reader = Callable[[str], Iterable[Listed]]


def from_file(path: Path) -> List[Listed]:
    """Return the hosts of a file with lines such as ``gpu01 slots=4``, ``me@gpu01:4`` or ``gpu01``.

    Raises:
      SpecError: the file, or lines in it, cannot be read; the error lists every such line.
    """
    return collected(str(path), lines_of(path))


def from_text(text: str) -> List[Listed]:
    """Return the hosts of a text for ``horovodrun -H``, such as ``gpu01:4,gpu02:4``.

    Raises:
      SpecError: an entry cannot be read.
    """
    return collected("--hosts", [(None, item) for item in split(text)])


def split(text: str) -> List[str]:
    """Split a text such as ``gpu[01,03],cpu01`` at the commas outside of ranges, without blank pieces."""
    pieces = (piece.strip() for piece in re.findall(r"(?:\[[^\]]*\]|[^,])+", text))
    return [piece for piece in pieces if piece]


def lines_of(path: Path) -> List[Line]:
    """Return the lines of a file, without comments and empty lines.

    Raises:
      SpecError: the file cannot be read.
    """
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()  # Windows may write a mark at the beginning
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "bytes that are not utf-8"
        raise SpecError([Problem(str(path), None, None, "", "a text file that can be read", reason.lower())]) from error
    numbered = [(number, re.sub(r"#.*", "", line).strip()) for number, line in enumerate(lines, 1)]
    return [(number, line) for number, line in numbered if line]


def read_line(line: str) -> Iterator[Listed]:
    """Yield the hosts of one line: ``gpu01 slots=4 max_slots=8``, ``me@gpu01:4``, ``gpu[01-04]``."""
    name, *settings = re.sub(r"\s*=\s*", "=", line).split()
    slots: Optional[int] = None
    found = _WITH_USER.fullmatch(name)
    user, name = (found["user"], found["host"]) if found else (None, name)
    name, number = split_port(name)
    if number is not None:
        slots = slot_count(number)
    for setting in settings:
        key, _, value = setting.partition("=")
        if key == "slots":
            slots = slot_count(value)
        elif key in _USERS and _WITH_USER.fullmatch(f"{value}@{name}"):
            user = value
        elif key not in _LIMITS:
            raise WrongEntry("HOST slots=N", f"'{setting}'", "")
    yield from (Listed(host, slots, user) for host in named(name))


def named(text: str) -> Sequence[str]:
    """Return the hosts that ``text``, a name or a range, stands for.

    Raises:
      WrongEntry: the text is not a host name or a range.
    """
    try:
        return hosts(text)
    except HostError as error:
        raise WrongEntry(error.expected, error.found, error.hint) from None


def slot_count(text: str) -> int:
    """Return ``text`` as a number of slots.

    Raises:
      WrongEntry: the text is not a number of slots.
    """
    if not text.isdecimal() or not 1 <= int(text) <= MOST_SLOTS:
        raise WrongEntry(_SLOTS, f"'{text}'", "")
    return int(text)


def collected(where: str, lines: Sequence[Line], read: Reader = read_line) -> List[Listed]:
    """Return the hosts of all lines in the order of the list, each once.

    Raises:
      SpecError: some lines are invalid, and the error lists all of them; or there is no host.
    """
    problems: List[Problem] = []
    found: Dict[str, List[Listed]] = {}
    for number, line in lines:
        try:
            for listed in read(line):
                _add(listed, found)
        except WrongEntry as wrong:
            problems.append(Problem(where, number, 1 if number else None, "", *wrong.args))
    if not found and not problems:
        problems.append(Problem(where, None, None, "", "at least one host", "none"))
    if problems:
        raise SpecError(problems)
    is_repeated = any(len(entries) > 1 for entries in found.values())
    return [_added_up(entries, is_repeated) for entries in found.values()]


def _add(listed: Listed, found: Dict[str, List[Listed]]) -> None:
    entries = found.setdefault(listed.host, [])
    if entries and entries[0].user != listed.user:
        users = " and ".join(each.user or "none" for each in (entries[0], listed))
        raise WrongEntry(f"one user for {listed.host}", users, "")
    total = sum(each.slots or 1 for each in [*entries, listed])
    if total > MOST_SLOTS:
        raise WrongEntry(_SLOTS, f"{total} for {listed.host} in all lines", "")
    entries.append(listed)


def _added_up(entries: Sequence[Listed], is_repeated: bool) -> Listed:
    """Return a host with the slots of all its lines.

    Args:
      is_repeated: whether the list has a host several times: a line without a number is then one slot.
    """
    if not is_repeated:
        return entries[0]
    return entries[0]._replace(slots=sum(1 if each.slots is None else each.slots for each in entries))
