"""The packages of an environment: a lock file that pins them, and a folder of wheels for hosts without an index.

A lock file has the format that pip's ``--require-hashes`` takes. ``uv pip compile --generate-hashes`` and
``pip-compile --generate-hashes`` write that format. Each package is pinned, with the hashes of its allowed files.
Comments do not count: a lock that differs in comments alone is the same lock.
"""

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path
from typing import AbstractSet, Dict, FrozenSet, Iterator, Tuple

from launch.errors import UsageError

TOOLS = ("packaging", "pip", "setuptools", "wheel")  # an old pip does not know today's wheels: these go first
_PINNED = re.compile(r"(?P<name>[A-Za-z0-9][A-Za-z0-9._-]*)(\[[^\]]*\])?\s*(===?|@)\s*\S")
_HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})\b")


@dataclass(frozen=True)
class LockFile:
    """A lock file that was read.

    ``requirements`` has a (name, line) for every package, in the order of the file.
    """

    path: Path
    requirements: Tuple[Tuple[str, str], ...]

    @property
    def text(self) -> str:
        """Return every requirement, as pip reads it."""
        return "".join(line + "\n" for _, line in self.requirements)

    @property
    def tools(self) -> str:
        """Return the requirements on which pip itself, and packages to be built, depend."""
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
            "name an index in setup.index_url, and write the rest with `uv pip compile --generate-hashes`"
            if line.startswith("-")
            else "write it with `uv pip compile --generate-hashes`"
        )
        raise UsageError(f"{path}:{number}: expected NAME==VERSION --hash=sha256:…, found {found!r}; {hint}")
    return re.sub(r"[-_.]+", "-", pinned.group("name")).lower(), line


CHUNK = 1 << 20
_KINDS = (".whl", ".tar.gz", ".zip")


def files_of(folder: Path, locks: AbstractSet[LockFile]) -> Dict[str, Path]:
    """Return the files of ``folder`` that one of ``locks`` allows: {SHA-256: file}.

    Raises:
      UsageError: the folder cannot be read, or has none of them.
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
            f"setup.wheels: expected files that {names} names in {folder}, found none among its "
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
