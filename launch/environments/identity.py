"""The Python environment that the key ``setup`` of a hosts file describes: its packages, and its name on a host.

A lock file has the format of pip's ``--require-hashes``. ``uv pip compile --generate-hashes`` and ``pip-compile
--generate-hashes`` write that format. Each package is pinned, with the hashes of its allowed files. Comments do not
count: a lock that differs only in comments is the same lock.

The name of an environment is a hash of its lock and of its Python. So the launcher knows its folder without asking a
host, and a host need not build an existing environment again.
"""

import hashlib
import json
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import AbstractSet, Dict, FrozenSet, Iterator, Mapping, Optional, Tuple

from cluster.spec.model import Setup, Spec
from launch.agent.wire.verb_requests import BuildRequest, LockText, WheelFile
from launch.errors import UsageError
from launch.hosts.bundle import PROJECT

PYTHON = "{environment}/bin/python"  # of a task; the host's agent knows the environment's folder
ANY = "*"  # every version of Python without its own lock
TOOLS = ("packaging", "pip", "setuptools", "wheel")  # installed first, because an old pip cannot read current wheels
_PINNED = re.compile(r"(?P<name>[A-Za-z0-9][A-Za-z0-9._-]*)(\[[^\]]*\])?\s*(===?|@)\s*\S")
CHUNK = 1 << 20
_KINDS = (".whl", ".tar.gz", ".zip")  # of the files in a folder of wheels
_HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})\b")


@dataclass(frozen=True)
class LockFile:
    """The content of a lock file.

    ``requirements`` has a (name, line) for every package, in the order of the file.
    """

    path: Path
    requirements: Tuple[Tuple[str, str], ...]

    @property
    def text(self) -> str:
        """Return all requirements in pip's format."""
        return "".join(line + "\n" for _, line in self.requirements)

    @property
    def tools(self) -> str:
        """Return the requirements for pip itself, and for building packages."""
        return "".join(line + "\n" for name, line in self.requirements if name in TOOLS)

    @property
    def hashes(self) -> FrozenSet[str]:
        """Return the SHA-256 of every file that the lock allows."""
        return frozenset(_HASH.findall(self.text))


def read_lock(path: Path) -> LockFile:
    """Read the lock file at ``path``.

    Raises:
      UsageError: the file cannot be read, or a line of it does not pin a package by hash.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise UsageError(f"setup.lock: expected a lock file at {path}, found: {reason}; see docs/setup.md") from error
    return LockFile(path, tuple(_requirement(path, number, line) for number, line in _lines(text)))


def _lines(text: str) -> Iterator[Tuple[int, str]]:
    """Yield each logical line with the number of its first physical line.

    The function joins continued lines, and leaves out comments and blank lines.
    """
    joined, began = "", 0
    for number, line in enumerate(text.splitlines(), 1):
        words = re.sub(r"(^|\s)#.*$", "", line).strip()
        began = began if joined else number
        joined += words.rstrip("\\").rstrip() + " "
        if not words.endswith("\\"):
            if joined.strip():
                yield began, joined.strip()
            joined = ""
    if joined.strip():
        yield began, joined.strip()


def _requirement(path: Path, number: int, line: str) -> Tuple[str, str]:
    pinned = _PINNED.match(line)
    if pinned is None or not _HASH.search(line):
        found = line if len(line) <= 60 else line[:57] + "…"
        hint = (
            "name an index only in setup.index_url; write the lock with `uv pip compile --generate-hashes`"
            if line.startswith("-")
            else "write the lock with `uv pip compile --generate-hashes`"
        )
        raise UsageError(f"{path}:{number}: expected NAME==VERSION --hash=sha256:…, found {found!r}; {hint}")
    return re.sub(r"[-_.]+", "-", pinned.group("name")).lower(), line


def files_of(folder: Path, locks: AbstractSet[LockFile]) -> Dict[str, Path]:
    """Return the files in ``folder`` that ``locks`` allow: {SHA-256: file}.

    Raises:
      UsageError: the folder cannot be read, or has no allowed file.
    """
    allowed = frozenset().union(*(lock.hashes for lock in locks))
    try:
        packed = [path for path in sorted(folder.iterdir()) if path.name.endswith(_KINDS)]
        found = {digest: path for digest, path in ((_digest(path), path) for path in packed) if digest in allowed}
    except OSError as error:
        raise UsageError(f"setup.wheels: expected a folder of wheels at {folder}, found: {error.strerror}") from error
    if not found:
        names = " or ".join(sorted(str(lock.path) for lock in locks))
        raise UsageError(
            f"setup.wheels: expected package files for {names} in {folder}, found none among its "
            f"{len(packed)} packages; fetch them with the hosts' Python: "
            f"`pip download --no-deps --require-hashes -r LOCK -d {folder}`"
        )
    return found


def _digest(path: Path) -> str:
    seen = hashlib.sha256()
    with open(str(path), "rb") as file:
        for chunk in iter(lambda: file.read(CHUNK), b""):
            seen.update(chunk)
    return seen.hexdigest()


def locks_of(spec: Spec, setup: Setup) -> Dict[str, LockFile]:
    """Return the lock for each version of Python: {version: lock}, where "*" stands for all other versions.

    Raises:
      UsageError: a lock cannot be read.
    """
    if setup.lock is not None:
        return {ANY: read_lock(beside(spec, setup.lock))}
    ours = own_locks()
    return {"3.7": read_lock(ours / "tf1.lock"), ANY: read_lock(ours / "tf2.lock")}


def own_locks() -> Path:
    """Return the folder of this project's own locks: this package if setup.py has put them here, else requirements/."""
    installed = Path(__file__).parent
    return installed if (installed / "tf1.lock").is_file() else PROJECT / "requirements"


def beside(spec: Spec, path: str) -> Path:
    """Return the full path of ``path``, which is relative to the hosts file."""
    return spec.path.resolve().parent / os.path.expanduser(path)


def identities(spec: Spec, pythons: Mapping[str, str]) -> Dict[str, str]:
    """Return the environment of each host: {host: hash}; empty without the key ``setup``.

    Raises:
      UsageError: a lock cannot be read.
    """
    if spec.setup is None:
        return {}
    return _identities(pythons, locks_of(spec, spec.setup))


def _identities(pythons: Mapping[str, str], locks: Mapping[str, LockFile]) -> Dict[str, str]:
    known = {python: _identity(python, _possible(python, locks)) for python in set(pythons.values())}
    return {host: known[python] for host, python in pythons.items()}


def _identity(python: str, locks: Mapping[str, LockFile]) -> str:
    made_of = [python, {version: lock.text for version, lock in locks.items()}]
    return hashlib.sha256(json.dumps(made_of, sort_keys=True).encode()).hexdigest()[:16]


def _possible(python: str, locks: Mapping[str, LockFile]) -> Mapping[str, LockFile]:
    """Return the locks that may apply to a host with this Python.

    If the Python's name has a version, such as ``python3.7``, only one lock applies.
    """
    named = re.search(r"python(\d+\.\d+)$", python)
    return {ANY: locks.get(named[1], locks[ANY])} if named else locks


class Order:
    """The environments that hosts must build.

    Attributes:
      hosts: the hash of each host's environment.
      files: the files that can be sent to the hosts, by SHA-256.

    Raises:
      UsageError: the hosts file has no key ``setup``, or a lock or wheel folder cannot be used.
    """

    def __init__(self, spec: Spec, pythons: Mapping[str, str], wheels: Optional[Path] = None):
        if spec.setup is None:
            raise UsageError(
                f"{spec.path}: expected the key setup, which names the lock file, found none; "
                "add `setup: {}` for the launcher's own lock file, or `setup: {lock: PATH}` for yours"
            )
        self._spec, self._setup = spec, spec.setup
        self._locks = locks_of(spec, spec.setup)
        self._pythons = dict(pythons)
        self.hosts = _identities(pythons, self._locks)
        folder = wheels or (beside(spec, spec.setup.wheels) if spec.setup.wheels else None)
        self._offline = folder is not None and spec.setup.index_url is None
        self.files: Dict[str, Path] = files_of(folder, frozenset(self._locks.values())) if folder else {}

    def request(self, host: str) -> BuildRequest:
        """Return the request to the agent of ``host``."""
        locks = _possible(self._pythons[host], self._locks)
        return BuildRequest(
            self._spec.workdir,
            self.hosts[host],
            {version: LockText(lock.text, lock.tools) for version, lock in locks.items()},
            tuple(WheelFile(path.name, digest, path.stat().st_size) for digest, path in self.files.items()),
            self._offline,
            self._setup.index_url,
        )
