"""A folder of wheels on the launcher's side, for hosts that reach no package index."""

import hashlib
from pathlib import Path
from typing import AbstractSet, Dict

from launch.environments.lock_file import LockFile
from launch.errors import UsageError

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
