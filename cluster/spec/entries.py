"""The items of the roles' lists, and of the spares: the hosts of each item, and its settings for their tasks."""

from dataclasses import dataclass, field
from typing import Any, Dict, Iterator, List, Mapping, Optional, Tuple, Union

from cluster.errors import Problem
from cluster.spec.host_names import HostError, endpoint, hosts
from cluster.spec.place import Path, Place
from cluster.spec.schema import Findings
from cluster.spec.yaml_document import Document

MASTER = "master"  # the chief, under the name that contrib.learn and Cloud ML know
MOST_TASKS = 100_000  # in one item; a larger number is a typing error


@dataclass(frozen=True)
class Entry:
    """One item of a role's list or of ``spares``: its hosts, with ranges expanded, and the settings of its tasks.

    Ports and GPUs are not assigned to its tasks yet.

    ``addresses`` has one address for each of ``hosts``. ``gpus`` is as in the file: a list of indices, a number,
    ``all``, ``none``, or None where the item has no key ``gpus``. ``limits`` are as in the file, too: null lifts a
    limit. ``spare`` marks an item of the list ``spares``, whose tasks are ps.
    """

    role: str
    path: Path
    document: Document
    hosts: Tuple[str, ...]
    addresses: Tuple[str, ...]
    port: Optional[int] = None
    count: int = 1
    gpus: Union[int, str, List[int], None] = None
    python: Optional[str] = None
    env: Mapping[str, str] = field(default_factory=dict)
    limits: Mapping[str, Any] = field(default_factory=dict)
    spare: bool = False

    def problem(self, below: Path, expected: str, found: str, hint: str = "") -> Problem:
        """Describe a problem with the value at the path ``below`` inside the entry; () for the whole entry."""
        return self.document.problem((*self.path, *below), expected, found, hint)

    @property
    def place(self) -> Place:
        """Return the place where the entry was written."""
        return self.document.place(self.path)

    @property
    def size(self) -> int:
        """Return the number of tasks in the entry."""
        return len(self.hosts) * self.count


def read_entries(document: Document, findings: Findings) -> Tuple[List[Entry], List[Problem]]:
    """Return the readable entries in the order of the file, and the problems of the unreadable entries.

    Items in which ``findings`` has a problem appear in neither list.
    """
    entries: List[Entry] = []
    problems: List[Problem] = []
    for path in _paths(document, findings):
        try:
            entries.append(_read(document, path))
        except _Unreadable as error:
            problems.append(document.problem(*error.args))
    return entries, problems


class _Unreadable(Exception):
    """An entry names no hosts. The arguments are the path, the expected and the found value, and a hint."""


def _paths(document: Document, findings: Findings) -> Iterator[Path]:
    cluster = document.value["cluster"] if findings.stand("cluster") else {}
    for role, items in cluster.items():
        for index in range(len(items or ()) if findings.stand("cluster", role) else 0):
            if findings.fit("cluster", role, index):
                yield "cluster", role, index
    # The spares come last, so that their indices follow those of the ps.
    for index in range(len(document.value.get("spares") or ()) if findings.stand("spares") else 0):
        if findings.fit("spares", index):
            yield "spares", index


def _read(document: Document, path: Path) -> Entry:
    spare = path[0] == "spares"
    item = document.value["spares"][path[1]] if spare else document.value["cluster"][path[1]][path[2]]
    role = "ps" if spare else "chief" if path[1] == MASTER else path[1]
    common: Dict[str, Any] = {"role": role, "path": path, "document": document, "spare": spare}
    if isinstance(item, str):
        names, port = _named(path, endpoint, item)
        return Entry(hosts=names, addresses=names, port=port, **common)
    names = _named((*path, "host"), _without_port, item["host"])
    addresses = _named((*path, "address"), _without_port, item["address"]) if "address" in item else names
    if len(addresses) != len(names):
        expected = f"as many addresses as there are hosts ({len(names)})"
        raise _Unreadable(
            (*path, "address"), expected, str(len(addresses)), "leave it out, or give a range of addresses"
        )
    size = len(names) * item.get("count", 1)
    if size > MOST_TASKS:
        raise _Unreadable(path, f"at most {MOST_TASKS} tasks in one item", str(size))
    env = env_at(document, (*path, "env"))
    given = {key: item[key] for key in ("port", "count", "gpus", "python") if key in item}
    limits = item.get("limits") or {}
    return Entry(hosts=names, addresses=addresses, env=env, limits=limits, **common, **given)


def env_at(document: Document, path: Path) -> Dict[str, str]:
    """Return the environment variables at ``path``, with values as written in the file: ``1.10`` stays ``1.10``."""
    values = document.value
    for key in path:
        values = values[key] if isinstance(key, int) else (values or {}).get(key)
    return {name: document.written((*path, name)) for name in values or {}}


def _without_port(text: str) -> Tuple[str, ...]:
    if text.count(":") == 1:
        raise HostError("a host without a port", f"'{text}'", "write the port under the key port")
    return hosts(text)


def _named(path: Path, read: Any, text: str) -> Any:
    try:
        return read(text)
    except HostError as error:
        raise _Unreadable(path, error.expected, error.found, error.hint) from None
